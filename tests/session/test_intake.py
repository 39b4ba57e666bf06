"""What comes in: each message in its place, or a typed error and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import ToolUseBlock
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseReasoningItem
from openai.types.responses.parsed_response import ParsedResponseFunctionToolCall

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.errors import MessageError
from ctxgc.session import Session
from ctxgc.stores import MemoryStore, Put
from tests.session.build import Json, filled, make, state_of
from tests.session.random_walk import faults
from tests.strategies.build import turn

CALL = {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}
CALLS: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "a", "content": "done"}
ASYNC_CALL: Json = {
    "type": "function_call", "call_id": "a", "name": "run", "arguments": "{}", "async": True,
}  # fmt: skip
BROKEN_CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{**CALL, "function": {"name": "run", "arguments": "{oops"}}],
}


class float64(float):  # noqa: N801 - as numpy calls it
    """A number of somebody's own class."""


WRONG: list[tuple[str, list[Json], Any, str]] = [
    ("a number", [], 7, "JSON object"),
    ("no role", [], {"content": "hello"}, "role"),
    ("an unknown role", [], {"role": "wizard", "content": "hello"}, "wizard"),
    ("content of no kind", [], {"role": "user", "content": 7}, "content"),
    ("an answer to no call", [], RESULT, "cannot come next"),
    ("two answers to one call", [CALLS, RESULT], RESULT, "cannot come next"),
    ("a request before the answer", [CALLS], {"role": "user", "content": "hi"}, "cannot come next"),
    ("arguments that are not JSON", [], BROKEN_CALL, "JSON"),
    ("no number", [], {"role": "assistant", "content": "z", "x": float64("nan")}, "JSON number"),
    ("too long a number", [], {"role": "assistant", "content": "z", "x": 10**5_000}, "digits"),
    ("a text", [], "hello", 'a text must be a whole message as JSON, such as {"role": "user"'),
    ("a number as text", [], "7", "a text must be a whole message as JSON"),
    ("several messages", [], [RESULT], "several with extend"),
    ("a whole answer", [], {"id": "c", "choices": []}, "append response.choices"),
    ("a whole answer, late", [CALLS, RESULT], {"id": "c", "choices": []}, "append response.choi"),
    ("another format", [CALLS, RESULT], {"type": "function_call_output", "call_id": "a"}, "speaks"),
]


@pytest.mark.parametrize(("what", "before", "message", "why"), WRONG, ids=[w[0] for w in WRONG])
def test_a_message_that_cannot_be_used_changes_nothing(
    what: str, before: list[Json], message: Any, why: str
) -> None:
    session = make()
    session.extend([{"role": "user", "content": "start"}, *before])
    state = state_of(session)
    with pytest.raises(MessageError, match=why):
        session.append(message)
    assert state_of(session) == state
    assert faults(session) == []


class Own(str):
    """A text of somebody's own class, such as what `ChatClient.send_message` returns."""

    __slots__ = ()


def test_texts_of_somebodys_own_class_are_texts() -> None:
    session = make(store=(store := MemoryStore()), session_id="s")
    for number in range(60):
        session.append({"role": "user", "content": Own(f"question {number} " + "word " * 40)})
        session.append(
            {"role": "assistant", "content": [{"type": "text", "text": Own("so be it")}]}
        )
        session.messages()
    assert session.gc_history
    assert {type(segment.text) for segment in session.segments()} == {str}
    assert make(store=store, session_id="s").view() == session.view()
    assert faults(session) == []


def test_a_batch_comes_in_whole_or_not_at_all() -> None:
    session = filled(2)
    state = state_of(session)
    with pytest.raises(MessageError):
        session.extend([*turn(2), RESULT, *turn(3)])
    assert state_of(session) == state
    assert session.extend([]) == []


def test_a_view_with_an_open_call_is_not_handed_out() -> None:
    session = make()
    session.extend([{"role": "user", "content": "go"}, CALLS])
    with pytest.raises(MessageError, match="'a' waits for its result"):
        session.messages()
    assert session.view()[-1] == CALLS
    session.append(RESULT)
    assert session.messages()[-1] == RESULT


def test_a_view_that_ends_in_bare_reasoning_is_not_handed_out() -> None:
    session = make()
    session.append({"type": "message", "role": "user", "content": "think"}, format="responses")
    session.append({"type": "reasoning", "id": "rs_1", "summary": []})
    with pytest.raises(MessageError, match="waits for what follows it"):
        session.messages()
    session.append({"type": "message", "role": "assistant", "content": "done"})
    assert len(session.messages()) == 3


def test_plain_text_becomes_what_the_first_clear_message_is() -> None:
    use = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    story = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
    ]
    session = make()
    for message in story:
        session.append(message)
    assert {message.format for message in session.history} == {"anthropic"}
    assert session.messages() == story
    with pytest.raises(MessageError, match="this session speaks 'anthropic'"):
        session.append(RESULT, format="openai")


def test_a_guessed_format_is_mended_in_the_store_too() -> None:
    from ctxgc.stores import open_store  # noqa: PLC0415

    store = open_store("memory:")
    session = make(store=store, session_id="s")
    session.append({"role": "user", "content": "hello"})
    session.messages()
    use = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    session.append({"role": "assistant", "content": [use]})
    session.close()
    again = make(store=store, session_id="s")
    assert {message.format for message in again.history} == {"anthropic"}


def test_what_the_openai_sdk_returns_comes_in_as_it_is() -> None:
    session = make()
    session.append({"role": "user", "content": "hello"})
    answer = ChatCompletionMessage.model_validate({**CALLS, "refusal": None, "annotations": []})
    session.append(answer)
    session.append(RESULT)
    assert session.messages() == [
        {"role": "user", "content": "hello"},
        {**CALLS, "refusal": None, "annotations": []},
        RESULT,
    ]


def test_the_output_of_a_response_chooses_the_format_and_goes_back_without_what_was_parsed() -> (
    None
):
    session = make()
    session.append({"role": "user", "content": "hello"})
    thought = ResponseReasoningItem(type="reasoning", id="rs_1", summary=[])
    session.extend([thought, ParsedResponseFunctionToolCall(**ASYNC_CALL, parsed_arguments={})])
    session.append({"type": "function_call_output", "call_id": "a", "output": "done"})
    assert session.messages("responses") == [
        {"role": "user", "content": "hello"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        ASYNC_CALL,
        {"type": "function_call_output", "call_id": "a", "output": "done"},
    ]


def test_the_blocks_of_an_anthropic_answer_choose_the_format() -> None:
    use = {"type": "tool_use", "id": "a", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
    session = make()
    session.append({"role": "user", "content": "hello"})
    session.append({"role": "assistant", "content": [ToolUseBlock.model_validate(use)]})
    session.append({"role": "user", "content": [result]})
    assert session.messages("anthropic") == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


def test_a_session_goes_on_while_an_asynchronous_call_runs() -> None:
    output = {"type": "function_call_output", "call_id": "a", "output": "done"}
    history: list[Json] = [
        {"role": "user", "content": "hello"}, ASYNC_CALL, {"role": "user", "content": "and?"},
    ]  # fmt: skip
    session = make()
    session.extend(history)
    assert session.messages() == history
    session.append(output)
    assert session.messages() == [*history, output]


def test_a_program_of_the_provider_gets_its_result_after_many_rounds() -> None:
    program = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}}
    ran = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {}}
    caller = {"type": "code_execution_20260120", "tool_id": "s"}
    history: list[Json] = [{"role": "user", "content": "hello"}]
    for number in range(3):
        use = {"type": "tool_use", "id": f"t{number}", "name": "run", "input": {}, "caller": caller}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"}
        blocks = [use] if number else [program, use]
        history += [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    history.append({"role": "assistant", "content": [ran]})
    session = make()
    for message in history:
        session.append(message)
    assert session.messages() == history
    assert faults(session) == []


def test_a_named_format_is_no_guess() -> None:
    session = make()
    session.append({"role": "user", "content": "hello"}, format="openai")
    with pytest.raises(MessageError, match="this session speaks 'openai', not 'anthropic'"):
        session.append({"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]})
    with pytest.raises(MessageError, match="this session speaks 'openai', not 'anthropic'"):
        session.messages("anthropic")


def test_system_text_and_tools_beside_the_messages_are_counted() -> None:
    session = make()
    session.append({"role": "user", "content": "hello"})
    before = session.usage().total_tokens
    session.set_system("one two three")
    session.set_tools([{"name": "a", "x": 1}, {"type": "function", "function": {"name": "b"}}])
    by_source = session.usage().by_source
    assert by_source["system"] == 3
    assert by_source["plugin"] > 0
    session.set_tools([{"name": "a", "x": 1}], GCPolicy.EPHEMERAL)
    entry = session.budget.get_entry(InstructionSource.PLUGIN)
    assert entry is not None
    assert {k: c.gc_policy for k, c in entry.children.items()} == {"a": GCPolicy.EPHEMERAL}
    assert session.usage().total_tokens > before


def test_the_counter_learns_from_what_the_provider_counted() -> None:
    from ctxgc.tokens import counter_for  # noqa: PLC0415

    session = make(counter=counter_for("some-unknown-model"))
    session.append({"role": "user", "content": "hello there " * 50})
    before = session.usage().total_tokens
    changed = session.report_usage(before // 2)
    assert changed == (session.usage().total_tokens != before)
    assert faults(session) == []


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ({"role": "user", "content": [{"type": "input_text", "text": "go"}]}, "responses"),
        ({"role": "user", "content": [{"type": "input_text", "text": "go"}]}, None),
        ({"role": "user", "content": "go"}, "responses"),
        ({"type": "message", "role": "user", "content": "go"}, None),
    ],
)
def test_a_clear_format_is_still_clear_after_a_restart(first: Json, named: Any) -> None:
    store = MemoryStore()
    with make(store=store, session_id="s") as session:
        session.append(first, format=named)
    again = make(store=store, session_id="s")
    with pytest.raises(MessageError, match="this session speaks 'responses', not 'anthropic'"):
        again.append({"role": "user", "content": "next"}, format="anthropic")
    again.append({"role": "user", "content": "next"})
    assert {message.format for message in again.history} == {"responses"}


def test_what_left_says_the_format_of_a_store_that_does_not() -> None:
    store = MemoryStore()
    use = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    with make(store=store, session_id="s", preserve_recent_turns=1) as session:
        session.append({"role": "user", "content": "hello"})
        session.append({"role": "assistant", "content": [use]})
        session.append({"role": "user", "content": [answer]})
        session.extend([m for number in range(4) for m in turn(number)])
        session.collect(60)
        assert "tool_use" not in str(session.view())
    doc = dict(store.get("s", "state", "session") or {})
    assert doc.pop("format") == "anthropic"
    store.commit("s", [Put("state", "session", doc)], expect=store.revision("s"))
    again = make(store=store, session_id="s")
    with pytest.raises(MessageError, match="this session speaks 'anthropic', not 'openai'"):
        again.append(RESULT, format="openai")


def test_blocks_of_text_are_no_items_of_responses() -> None:
    session = make()
    session.append({"role": "user", "content": [{"type": "text", "text": "hello"}]})
    state = state_of(session)
    with pytest.raises(MessageError, match="this session speaks 'openai', not 'responses'"):
        session.append({"type": "reasoning", "id": "rs_1", "summary": []})
    assert state_of(session) == state
    session.append(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "r", "input": {}}],
        }
    )
    assert {message.format for message in session.history} == {"anthropic"}


def test_a_chat_that_the_assistant_opened_is_not_read_as_one_of_anthropic() -> None:
    session = make()
    session.append({"role": "assistant", "content": "How can I help?"})
    session.append({"role": "user", "content": "run it"})
    with pytest.raises(MessageError, match="this session speaks 'openai', not 'anthropic'"):
        session.append(
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "r", "input": {}}],
            }
        )
    session.append(CALLS)
    assert session.view()[-1] == CALLS


def test_a_refused_message_settles_no_format() -> None:
    session = make()
    with pytest.raises(MessageError, match="cannot come next"):
        session.append(RESULT, format="openai")
    session.append({"role": "user", "content": "hello"})
    session.append(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "r", "input": {}}],
        }
    )
    assert {message.format for message in session.history} == {"anthropic"}


@pytest.mark.parametrize("named", [None, "openai"])
def test_a_refused_message_of_another_format_leaves_the_choice_open(named: Any) -> None:
    session = make()
    session.append({"role": "user", "content": "hello"})
    with pytest.raises(MessageError, match="cannot come next"):
        session.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]})
    session.append(CALLS, format=named)
    session.append(RESULT)
    assert {message.format for message in session.history} == {"openai"}
    assert session.messages() == [{"role": "user", "content": "hello"}, CALLS, RESULT]


def test_what_the_counter_learned_is_weighed_for_all_that_is_sent_and_stored() -> None:
    store = MemoryStore()
    asked: Json = {"context_limit": 90_000, "model": "claude-sonnet-5", "store": store}
    with Session(**asked, session_id="s") as session:
        session.append({"role": "user", "content": "hello there my friend " * 400})
        session.set_system("You are a careful engineer. " * 400)
        first = session.usage().by_source
        for _ in range(60):
            session.report_usage(2_000)
        learned = session.usage().by_source
    scales = [round(learned[name] / first[name], 1) for name in ("system", "conversation")]
    assert scales == [0.3, 0.3]
    with Session(**asked, session_id="s") as again:
        assert again.usage().by_source == learned
