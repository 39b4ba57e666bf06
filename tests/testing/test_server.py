"""The official SDKs talk to the strict server as to their own."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest

from ctxgc.errors import ConfigError, CtxgcError
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.testing.builders import calling, function_call, result, user
from tests.testing.conftest import PATIENCE

WORDS = "The file has three lines; the second is empty, the third is not."
CALLS = (ToolCall("read", {"path": "ä.py"}), ToolCall("grep", '{"pattern": "x"}', id="mine_1"))
TURN = Turn(text=WORDS, tool_calls=CALLS, thinking="I should look before I speak.")
HELLO: Any = [user("hello")]


def test_a_chat_turn_arrives_whole(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([TURN])
    answer = chat.chat.completions.create(model="gpt-test", messages=HELLO)
    message = answer.choices[0].message
    assert message.content == WORDS
    assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()] == [
        ("call_00000001", "read", '{"path": "ä.py"}'),
        ("mine_1", "grep", '{"pattern": "x"}'),
    ]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.model == "gpt-test"


def test_a_streamed_chat_turn_adds_up_to_the_whole(
    model: ScriptedModel, chat: openai.OpenAI
) -> None:
    model.extend([TURN, TURN])
    whole = chat.chat.completions.create(model="m", messages=HELLO)
    with chat.chat.completions.stream(
        model="m", messages=HELLO, stream_options={"include_usage": True}
    ) as stream:
        streamed = stream.get_final_completion()
    ours, theirs = streamed.choices[0].message, whole.choices[0].message
    assert ours.content == theirs.content
    assert [c.function.arguments for c in ours.tool_calls or ()] == [
        c.function.arguments for c in theirs.tool_calls or ()
    ]
    assert streamed.usage is not None
    assert whole.usage is not None
    assert streamed.usage.completion_tokens == whole.usage.completion_tokens
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason


def test_usage_of_a_chat_stream_comes_only_when_asked_for(
    model: ScriptedModel, chat: openai.OpenAI
) -> None:
    model.extend(["one", "two"])
    silent = chat.chat.completions.create(model="m", messages=HELLO, stream=True)
    assert [chunk.usage for chunk in silent if chunk.usage] == []
    told = chat.chat.completions.create(
        model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    assert [chunk.usage.completion_tokens for chunk in told if chunk.usage] == [1]


def test_a_response_arrives_whole(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([TURN])
    answer = chat.responses.create(model="m", input="hello", instructions="be brief")
    assert [item.type for item in answer.output] == [
        "reasoning", "message", "function_call", "function_call",
    ]  # fmt: skip
    assert answer.output_text == WORDS
    assert answer.instructions == "be brief"
    assert answer.usage is not None
    assert answer.usage.output_tokens_details.reasoning_tokens > 0


def test_a_streamed_response_adds_up_to_the_whole(
    model: ScriptedModel, chat: openai.OpenAI
) -> None:
    model.extend([TURN])
    with chat.responses.stream(model="m", input="hello") as stream:
        numbers = [event.sequence_number for event in stream]
        answer = stream.get_final_response()
    assert numbers == list(range(len(numbers)))
    assert answer.output_text == WORDS
    assert [item.arguments for item in answer.output if item.type == "function_call"] == [
        '{"path": "ä.py"}',
        '{"pattern": "x"}',
    ]


def test_a_message_arrives_whole(model: ScriptedModel, claude: anthropic.Anthropic) -> None:
    model.extend([TURN])
    answer = claude.messages.create(model="m", max_tokens=99, messages=HELLO)
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[2].to_dict() == {
        "type": "tool_use", "id": "toolu_00000001", "name": "read", "input": {"path": "ä.py"},
    }  # fmt: skip
    assert answer.stop_reason == "tool_use"


def test_a_streamed_message_adds_up_to_the_whole(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    model.extend([Turn(text=WORDS, tool_calls=CALLS[1:], thinking="hm")] * 2)
    whole = claude.messages.create(model="m", max_tokens=99, messages=HELLO)
    with claude.messages.stream(model="m", max_tokens=99, messages=HELLO) as stream:
        streamed = stream.get_final_message()
    assert [b.to_dict() for b in streamed.content] == [b.to_dict() for b in whole.content]
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert streamed.stop_reason == whole.stop_reason


def test_the_async_clients_get_the_same_answers(model: ScriptedModel, server: StrictServer) -> None:
    model.extend(["one", "two", "three", "four"])

    async def talk() -> list[str | None]:
        async with (
            openai.AsyncOpenAI(base_url=server.openai_base_url, api_key="any") as chat,
            anthropic.AsyncAnthropic(base_url=server.base_url, api_key="any") as claude,
        ):
            first = await chat.chat.completions.create(model="m", messages=HELLO)
            stream = await chat.chat.completions.create(model="m", messages=HELLO, stream=True)
            second = [chunk.choices[0].delta.content or "" async for chunk in stream]
            third = await claude.messages.create(model="m", max_tokens=9, messages=HELLO)
            async with claude.messages.stream(model="m", max_tokens=9, messages=HELLO) as running:
                fourth = await running.get_final_text()
        return [first.choices[0].message.content, "".join(second), third.content[0].text, fourth]

    assert asyncio.run(asyncio.wait_for(talk(), PATIENCE)) == ["one", "two", "three", "four"]


def test_a_tool_loop_runs_to_its_end(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([CALLS[1], "done"])
    history: list[Any] = list(HELLO)
    first = chat.chat.completions.create(model="m", messages=history).choices[0].message
    history += [first.to_dict(), result("mine_1")]
    second = chat.chat.completions.create(model="m", messages=history).choices[0].message
    assert second.content == "done"
    assert model.turns_left == 0
    assert [request.messages for request in model.requests] == [HELLO, history]


def test_a_response_is_continued_by_its_id(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([CALLS[1], "done"])
    first = chat.responses.create(model="m", input="hello")
    outputs: Any = [{"type": "function_call_output", "call_id": "mine_1", "output": "ok"}]
    second = chat.responses.create(model="m", input=outputs, previous_response_id=first.id)
    assert second.output_text == "done"
    with pytest.raises(openai.BadRequestError) as error:
        chat.responses.create(model="m", input="x", previous_response_id="resp_none")
    assert error.value.code == "previous_response_not_found"


def test_a_turn_may_be_a_function_of_the_request(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([lambda request: f"you said {request.messages[-1]['content']}"])
    answer = chat.chat.completions.create(model="m", messages=HELLO)
    assert answer.choices[0].message.content == "you said hello"


def test_the_models_are_listed_in_the_shape_of_the_asker(
    chat: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    assert [each.id for each in chat.models.list()] == ["scripted-model"]
    assert [each.id for each in claude.models.list()] == ["scripted-model"]


def test_requests_are_recorded_with_their_bytes_and_without_their_keys(
    model: ScriptedModel, server: StrictServer, claude: anthropic.Anthropic
) -> None:
    model.extend(["ok"])
    claude.messages.create(model="m", max_tokens=9, messages=HELLO)
    (request,) = server.requests
    assert (request.format, request.path) == ("anthropic", "/v1/messages")
    assert b'"hello"' in request.raw
    assert request.body["max_tokens"] == 9
    assert "any" not in request.headers.values()


def test_a_refused_request_is_recorded_with_every_rule_it_broke(
    server: StrictServer, chat: openai.OpenAI
) -> None:
    broken: Any = [calling("a"), user(), result("b")]
    with pytest.raises(openai.BadRequestError):
        chat.chat.completions.create(model="m", messages=broken)
    (refusal,) = server.refusals
    assert [breach.rule for breach in refusal.breaches] == ["open_call", "orphan_result"]
    assert refusal.request.messages == broken
    assert server.requests == []


def test_a_script_that_is_over_is_a_server_error_that_says_so(
    server: StrictServer, chat: openai.OpenAI
) -> None:
    with pytest.raises(openai.InternalServerError, match="the script has only 0 turns"):
        chat.chat.completions.create(model="m", messages=HELLO)
    assert len(server.script_errors) == 1


def test_validation_can_be_switched_off(model: ScriptedModel) -> None:
    model.extend(["fine"])
    with (
        StrictServer(model, validate=False) as server,
        openai.OpenAI(base_url=server.openai_base_url, api_key="any") as chat,
    ):
        broken: Any = [function_call("a")]
        assert chat.responses.create(model="m", input=broken).output_text == "fine"


def test_two_servers_know_nothing_of_each_other() -> None:
    with StrictServer(["one"]) as first, StrictServer(["two"]) as second:
        assert first.base_url != second.base_url
        for server, words in ((first, "one"), (second, "two")):
            with openai.OpenAI(base_url=server.openai_base_url, api_key="any") as chat:
                answer = chat.chat.completions.create(model="m", messages=HELLO)
                assert answer.choices[0].message.content == words


def test_a_server_outside_its_block_has_no_address() -> None:
    server = StrictServer()
    with pytest.raises(CtxgcError, match="not running"):
        _ = server.base_url
    with server, pytest.raises(CtxgcError, match="already running"):
        server.start()
    server.close()
    with pytest.raises(CtxgcError, match="not running"):
        _ = server.base_url


def test_a_server_can_be_started_again() -> None:
    server = StrictServer(ScriptedModel(then="here"))
    for _ in range(2):
        with (
            server,
            openai.OpenAI(base_url=server.openai_base_url, api_key="any", timeout=PATIENCE) as chat,
        ):
            assert chat.responses.create(model="m", input="hello").output_text == "here"
    assert len(server.requests) == 2


def test_an_unknown_setting_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean `context_limit`"):
        StrictServer(context_limits=5)
