"""Each rule of chat completions, broken once and kept once, with the provider's text."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.errors import InputError
from ctxgc.testing import Breach
from ctxgc.testing.checker_openai import check
from tests.testing.builders import assistant, call, calling, result, user

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: "
)
ORPHAN = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)
ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"

KEPT: dict[str, list[dict[str, Any]]] = {
    "one call": [user(), calling("a"), result("a"), assistant()],
    "a parallel batch in any order": [user(), calling("a", "b"), result("b"), result("a")],
    "an id used again in a later batch": [
        user(), calling("a"), result("a"), calling("a"), result("a"),
    ],
    "text parts and an image": [
        user([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]),
    ],
    "empty user text": [user("")],
    "developer and system": [
        {"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, user(),
    ],
    "a refusal instead of content": [
        user(), {"role": "assistant", "content": None, "refusal": "no"},
    ],
    "arguments with any JSON value": [
        user(),
        {"role": "assistant", "tool_calls": [call("a", arguments='{"n": 1e2, "s": "\\ud800"}')]},
        result("a"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("messages", KEPT.values(), ids=KEPT.keys())
def test_what_the_provider_takes_has_no_breach(messages: list[dict[str, Any]]) -> None:
    assert check(messages) == []
    assert check({"model": "m", "messages": messages}) == []


BROKEN: dict[str, tuple[list[Any], Breach]] = {
    "no messages": (
        [],
        Breach(
            "empty_history",
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            "messages",
            "empty_array",
        ),
    ),
    "result of no call": (
        [user(), result("a")],
        Breach("orphan_result", ORPHAN, "messages.[1].role", index=1),
    ),
    "result after another message": (
        [user(), calling("a"), result("a"), assistant(), result("a")],
        Breach("orphan_result", ORPHAN, "messages.[4].role", index=4),
    ),
    "result of another batch": (
        [user(), calling("a"), result("a"), result("b")],
        Breach(
            "orphan_result",
            "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous "
            "message.",
            "messages.[3].tool_call_id",
            index=3,
        ),
    ),
    "two results of one call": (
        [user(), calling("a"), result("a"), result("a")],
        Breach(
            "second_result",
            "Duplicate value for 'tool_call_id' of 'a' in message[3].",
            "messages.[3].tool_call_id",
            index=3,
        ),
    ),
    "open call before another message": (
        [user(), calling("a", "b"), result("b"), user()],
        Breach("open_call", UNANSWERED + "a", "messages.[3].role", index=3),
    ),
    "open calls at the end": (
        [user(), calling("a", "b")],
        Breach("open_call", UNANSWERED + "a, b", "messages.[2].role", index=2),
    ),
    "one id twice in a batch": (
        [user(), calling("a", "a"), result("a")],
        Breach(
            "duplicate_id",
            "Duplicate value for 'tool_calls.id' of 'a' in message[1].",
            "messages.[1].tool_calls",
            index=1,
        ),
    ),
    "unknown role": (
        [{"role": "robot", "content": "x"}],
        Breach(
            "role",
            f"Invalid value: 'robot'. Supported values are: {ROLES}.",
            "messages[0].role",
            "invalid_value",
            index=0,
        ),
    ),
    "no content": (
        [{"role": "user", "content": None}],
        Breach(
            "content",
            "Invalid value for 'content': expected a string, got null.",
            "messages.[0].content",
            index=0,
        ),
    ),
    "no parts": (
        [user([])],
        Breach(
            "content",
            "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            "messages[0].content",
            "empty_array",
            index=0,
        ),
    ),
    "a part of another role": (
        [assistant([{"type": "image_url", "image_url": {"url": "x"}}])],
        Breach(
            "content",
            "Invalid value: 'image_url'. Supported values are: 'text' and 'refusal'.",
            "messages[0].content[0]",
            "invalid_value",
            index=0,
        ),
    ),
    "content of another type": (
        [user(7)],
        Breach(
            "shape",
            "Invalid type for 'messages[0].content': expected a string or an array of objects, "
            "but got an integer instead.",
            "messages[0].content",
            "invalid_type",
            index=0,
        ),
    ),
    "a message that is no object": (
        ["hello"],
        Breach(
            "shape",
            "Invalid type for 'messages[0]': expected an object, but got a string instead.",
            "messages[0]",
            "invalid_type",
            index=0,
        ),
    ),
    "arguments that are no JSON": (
        [user(), {"role": "assistant", "tool_calls": [call("a", arguments="{x")]}, result("a")],
        Breach(
            "arguments",
            "Failed to parse tool call arguments as JSON: "
            "'messages[1].tool_calls[0].function.arguments'.",
            "messages[1].tool_calls[0].function.arguments",
            "invalid_value",
            index=1,
        ),
    ),
    "an empty list of calls": (
        [user(), {"role": "assistant", "content": "x", "tool_calls": []}],
        Breach(
            "calls",
            "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length "
            "1, but got an empty array instead.",
            "messages[1].tool_calls",
            "empty_array",
            index=1,
        ),
    ),
}


@pytest.mark.parametrize(("messages", "breach"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_the_only_breach_and_has_the_provider_text(
    messages: list[Any], breach: Breach
) -> None:
    assert check(messages) == [breach]


def test_a_tool_message_without_an_id_is_refused_by_its_field() -> None:
    found = check([user(), calling("a"), {"role": "tool", "content": "x"}])
    assert found[0].message == "Missing required parameter: 'messages[2].tool_call_id'."
    assert [breach.rule for breach in found] == ["shape", "orphan_result", "open_call"]


def test_calls_at_the_end_may_wait_while_the_turn_is_not_complete() -> None:
    assert check([user(), calling("a", "b"), result("b")], complete=False) == []
    assert [b.rule for b in check([user(), calling("a"), user()], complete=False)] == ["open_call"]


@pytest.mark.parametrize("body", ["hello", {"messages": "hello"}, {"messages": {"role": "user"}}])
def test_what_is_no_list_of_messages_is_an_input_error(body: Any) -> None:
    with pytest.raises(InputError, match="`messages` must be a list of messages"):
        check(body)
