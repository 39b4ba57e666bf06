"""What the strict server refuses arrives as the SDK's own exception, with the provider's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.testing.builders import (
    asked,
    assistant,
    calling,
    function_call,
    output,
    result,
    text,
    tool_result,
    tool_use,
    user,
)
from tests.testing.conftest import PATIENCE

LONG = "word " * 400


@pytest.fixture
def small(model: ScriptedModel) -> Iterator[StrictServer]:
    with StrictServer(model, context_limit=100, max_body_bytes=4_000) as running:
        yield running


@pytest.fixture
def small_chat(small: StrictServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=small.openai_base_url, api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def small_claude(small: StrictServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=small.base_url, api_key="any", max_retries=0) as client:
        yield client


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([user(), result("a")], "must be a response to a preceeding message with 'tool_calls'"),
        ([user(), calling("a"), user()], "did not have response messages: a"),
        ([user(), calling("a"), result("a"), result("a")], "Duplicate value for 'tool_call_id'"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_chat_refuses_an_invalid_history(
    chat: openai.OpenAI, messages: Any, words: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as error:
        chat.chat.completions.create(model="m", messages=messages, stream=stream)
    assert error.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([user(), output("a")], "No tool call found for function call output with call_id a"),
        ([user(), function_call("a")], "No tool output found for function call a"),
    ],
)
def test_responses_refuses_an_invalid_history(chat: openai.OpenAI, items: Any, words: str) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as error:
        chat.responses.create(model="m", input=items)
    assert error.value.param == "input"


def test_responses_refuses_an_issued_call_without_its_reasoning(
    model: ScriptedModel, chat: openai.OpenAI
) -> None:
    model.extend([Turn(thinking="hm", tool_calls=(ToolCall("read"),)), "fine"])
    items = [each.to_dict() for each in chat.responses.create(model="m", input="go").output]
    call_id = items[1]["call_id"]
    whole: Any = [user("go"), *items, output(str(call_id))]
    with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
        chat.responses.create(model="m", input=[whole[0], *whole[2:]])
    assert chat.responses.create(model="m", input=whole).output_text == "fine"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([user(), assistant([tool_use("a")]), user()], "ids were found without `tool_result`"),
        ([user([tool_result("a")])], "unexpected `tool_use_id` found in `tool_result` blocks"),
        ([assistant(), user()], 'first message must use the "user" role'),
        ([user([text("")])], "text content blocks must be non-empty"),
    ],
)
def test_messages_refuses_an_invalid_history(
    claude: anthropic.Anthropic, messages: Any, words: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=words) as error:
        claude.messages.create(model="m", max_tokens=9, messages=messages)
    body: Any = error.value.body
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"


def test_counting_refuses_an_invalid_history_too(claude: anthropic.Anthropic) -> None:
    broken: Any = [assistant(), user()]
    with pytest.raises(anthropic.BadRequestError, match="first message"):
        claude.messages.count_tokens(model="m", messages=broken)


def _think(claude: anthropic.Anthropic, model: ScriptedModel) -> list[Any]:
    """Return a history that ends with the result of a call which signed thinking came with."""
    model.extend([Turn(thinking="hm", tool_calls=(ToolCall("read"),)), "fine"])
    first = claude.messages.create(model="m", max_tokens=9, system="s", messages=[user("go")])
    blocks = [block.to_dict() for block in first.content]
    return [user("go"), assistant(blocks), user([tool_result(str(blocks[1]["id"]))])]


def test_messages_takes_back_the_thinking_it_issued(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    history = _think(claude, model)
    answer = claude.messages.create(model="m", max_tokens=9, system="s", messages=history)
    assert answer.content[0].to_dict() == {"type": "text", "text": "fine"}


def test_messages_refuses_thinking_that_was_changed(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    history = _think(claude, model)
    history[1]["content"][0]["thinking"] = "hmm"
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
        claude.messages.create(model="m", max_tokens=9, system="s", messages=history)


def test_messages_refuses_thinking_behind_a_changed_prefix(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    history = _think(claude, model)
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        claude.messages.create(model="m", max_tokens=9, system="other", messages=history)


def test_messages_drops_mismatched_thinking_for_those_who_ask(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    history = _think(claude, model)
    answer = claude.beta.messages.create(
        model="m",
        max_tokens=9,
        system="other",
        messages=history,
        thinking={
            "type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        },
        betas=["thinking-binding-controls-2026-08-01"],
    )
    assert [each.to_dict() for each in answer.input_transformations or ()] == [
        {
            "type": "thinking_dropped",
            "path": "messages.1.content.0",
            "reason": "prefix_binding_mismatch",
        }
    ]


def test_dropping_blocks_without_its_beta_header_is_refused(claude: anthropic.Anthropic) -> None:
    thinking: Any = {"type": "adaptive", "block_binding": {}}
    with pytest.raises(anthropic.BadRequestError, match="block_binding: Extra inputs"):
        claude.messages.create(model="m", max_tokens=9, messages=[user()], thinking=thinking)


def test_chat_names_the_numbers_of_a_prompt_that_is_too_long(small_chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        small_chat.chat.completions.create(model="m", messages=[{"role": "user", "content": LONG}])
    assert error.value.code == "context_length_exceeded"
    assert error.value.param == "messages"
    body: Any = error.value.body
    assert body["message"] == (
        "This model's maximum context length is 100 tokens. However, your messages resulted in "
        "406 tokens. Please reduce the length of the messages."
    )


def test_chat_counts_the_output_that_is_asked_for(small_chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="6 in the messages, 95 in the completion"):
        small_chat.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], max_completion_tokens=95
        )


def test_responses_refuses_a_prompt_that_is_too_long(small_chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="exceeds the context window") as error:
        small_chat.responses.create(model="m", input=LONG)
    assert error.value.code == "context_length_exceeded"


def test_messages_names_the_numbers_of_a_prompt_that_is_too_long(
    small_claude: anthropic.Anthropic,
) -> None:
    with pytest.raises(anthropic.BadRequestError) as error:
        small_claude.messages.create(model="m", max_tokens=9, messages=asked(LONG))
    assert "prompt is too long: 406 tokens > 100 maximum" in str(error.value)
    with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: 6 \+ 95 > 100"):
        small_claude.messages.create(model="m", max_tokens=95, messages=asked("hi"))


def test_a_prompt_that_just_fits_is_answered(
    model: ScriptedModel, small_claude: anthropic.Anthropic
) -> None:
    model.extend(["ok"])
    answer = small_claude.messages.create(model="m", max_tokens=94, messages=asked("hi"))
    assert answer.usage.input_tokens == 6


def test_a_body_beyond_the_limit_is_too_large(small_claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.APIStatusError, match="request_too_large") as error:
        small_claude.messages.create(model="m", max_tokens=9, messages=asked("x" * 5_000))
    assert error.value.status_code == 413


def _post(server: StrictServer, path: str, **request: Any) -> httpx2.Response:
    return httpx2.post(f"{server.base_url}{path}", timeout=PATIENCE, **request)


def test_a_request_without_a_key_is_not_authenticated(server: StrictServer) -> None:
    chat = _post(server, "/v1/chat/completions", json={"model": "m", "messages": [user()]})
    assert chat.status_code == 401
    assert chat.json()["error"]["message"].startswith("You didn't provide an API key.")
    claude = _post(server, "/v1/messages", json={})
    assert claude.status_code == 401
    assert claude.json()["error"] == {
        "type": "authentication_error",
        "message": "x-api-key header is required",
    }


KEY = {"authorization": "Bearer any"}
CLAUDE = {"x-api-key": "any", "anthropic-version": "2023-06-01"}

GARBAGE: list[tuple[str, dict[str, str], Any, str]] = [
    ("/v1/chat/completions", KEY, b"{", "We could not parse the JSON body of your request."),
    ("/v1/chat/completions", KEY, b"[]", "We could not parse the JSON body of your request."),
    ("/v1/messages", CLAUDE, b"{", "The request body is not valid JSON"),
    ("/v1/chat/completions", KEY, {"messages": []}, "Missing required parameter: 'model'."),
    (
        "/v1/chat/completions", KEY, {"model": "m", "messages": "hi"},
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
    ),
    (
        "/v1/chat/completions", KEY, {"model": 7, "messages": [user()]},
        "Invalid type for 'model': expected a string, but got an integer instead.",
    ),
    (
        "/v1/chat/completions", KEY, {"model": "m", "messages": [user()], "temperature": "hot"},
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
    ),
    (
        "/v1/chat/completions", KEY, {"model": "m", "messages": [user()], "wishes": 3},
        "Unknown parameter: 'wishes'.",
    ),
    ("/v1/responses", KEY, {"model": "m"}, 'One of "input"'),
    (
        "/v1/responses", KEY, {"model": "m", "input": 7},
        "Invalid type for 'input': expected a string or an array of objects, but got an integer",
    ),
    ("/v1/messages", CLAUDE, {"model": "m", "messages": [user()]}, "max_tokens: Field required"),
    (
        "/v1/messages", CLAUDE, {"model": "m", "messages": [user()], "max_tokens": "9"},
        "max_tokens: Input should be a valid integer",
    ),
    (
        "/v1/messages", CLAUDE, {"model": "m", "messages": [user()], "max_tokens": 9, "wishes": 3},
        "wishes: Extra inputs are not permitted",
    ),
    (
        "/v1/messages", {"x-api-key": "any"},
        {"model": "m", "messages": [user()], "max_tokens": 9},
        "anthropic-version: header is required",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "headers", "body", "words"), GARBAGE)
def test_garbage_at_the_top_level_is_refused_by_name(
    server: StrictServer, path: str, headers: dict[str, str], body: Any, words: str
) -> None:
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = _post(server, path, headers=headers, **sent)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(words)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_extra_fields_can_be_let_through(model: ScriptedModel) -> None:
    model.extend(["ok"])
    with StrictServer(model, extra_fields=("wishes",)) as server:
        body = {"model": "m", "messages": [user()], "wishes": 3}
        assert _post(server, "/v1/chat/completions", headers=KEY, json=body).status_code == 200
