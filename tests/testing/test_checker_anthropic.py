"""Each rule of the messages API, broken once and kept once, with the provider's text."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.testing import Breach
from ctxgc.testing.checker_anthropic import check
from tests.testing.builders import assistant, text, thought, tool_result, tool_use, user

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
PROGRAM = {**SEARCH, "name": "code_execution"}
CALLED = {"caller": {"type": "code_execution_20260120", "tool_id": "srv_1"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}

KEPT: dict[str, list[dict[str, Any]]] = {
    "a dialogue": [user(), assistant(), user("go on")],
    "a call and its result": [user(), assistant([tool_use()]), user([tool_result()])],
    "text after the results": [user(), assistant([tool_use()]), user([tool_result(), text()])],
    "a parallel batch in any order": [
        user(),
        assistant([text(), tool_use("a"), tool_use("b")]),
        user([tool_result("b"), tool_result("a")]),
    ],
    "results in two user messages that are read as one": [
        user(),
        assistant([tool_use("a"), tool_use("b")]),
        user([tool_result("a")]),
        user([tool_result("b")]),
    ],
    "calls in two assistant messages that are read as one": [
        user(),
        assistant([tool_use("a")]),
        assistant([tool_use("b")]),
        user([tool_result("a"), tool_result("b")]),
    ],
    "a system entry between": [
        {"role": "system", "content": "env"},
        user(),
        assistant([tool_use()]),
        {"role": "system", "content": "reminder"},
        user([tool_result()]),
    ],
    "a server tool with its result": [user(), assistant([SEARCH, FOUND, text()])],
    "a server tool that was paused": [user(), assistant([text(), SEARCH])],
    "an MCP tool with its result": [
        user(), assistant([{**SEARCH, "type": "mcp_tool_use"}, {**FOUND, "type": "mcp_tool_result"}]),
    ],
    "a program that the client answers in two turns": [
        user(), assistant([PROGRAM, {**tool_use("a"), **CALLED}]), user([tool_result("a")]),
        assistant([{**tool_use("b"), **CALLED}]), user([tool_result("b")]),
        assistant([{**FOUND, "type": "code_execution_tool_result"}]), user(),
    ],
    "a change of the tools": [
        user(), {"role": "system", "content": [{"type": "tool_removal", "tool": {}}]}, assistant(),
    ],
    "a system message that only sets the output": [
        user(), {"role": "system", "output_config": {"effort": "low"}}, assistant(),
    ],
    "a compaction, a list of tools and a fallback": [
        user(),
        assistant([{"type": t} for t in ("compaction", "mcp_tool_listing", "fallback")]),
    ],
    "thinking before a call": [
        user(), assistant([thought(), tool_use()]), user([tool_result()]),
    ],
    "an empty last assistant message": [user(), assistant("")],
}  # fmt: skip


@pytest.mark.parametrize("messages", KEPT.values(), ids=KEPT.keys())
def test_what_the_provider_takes_has_no_breach(messages: list[dict[str, Any]]) -> None:
    assert check(messages) == []
    assert check({"model": "m", "max_tokens": 9, "messages": messages}) == []


def _open(index: int, ids: str) -> Breach:
    message = (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in "
        "the next message."
    )
    return Breach("open_call", message, f"messages.{index}", index=index)


def _orphan(path: str, call_id: str, index: int) -> Breach:
    message = (
        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
    )
    return Breach("orphan_result", message, path, index=index)


def _at(rule: str, message: str, param: str, index: int) -> Breach:
    return Breach(rule, message, param, index=index)


EMPTY = "all messages must have non-empty content except for the optional final assistant message"

BROKEN: dict[str, tuple[list[Any], Breach]] = {
    "no messages": (
        [],
        Breach("empty_history", "messages: at least one message is required", "messages"),
    ),
    "assistant first": (
        [assistant(), user()],
        _at("first_role", 'messages: first message must use the "user" role', "messages.0", 0),
    ),
    "unknown role": (
        [user(), {"role": "tool", "content": "x"}, assistant()],
        _at(
            "role",
            'messages: Unexpected role "tool". Allowed roles are "user" or "assistant".',
            "messages.1",
            1,
        ),
    ),
    "open call before text": ([user(), assistant([tool_use("a")]), user()], _open(1, "a")),
    "open calls at the end": (
        [user(), assistant([tool_use("a"), tool_use("b")])],
        _open(1, "a, b"),
    ),
    "a batch answered in part": (
        [user(), assistant([tool_use("a"), tool_use("b")]), user([tool_result("b")])],
        _open(1, "a"),
    ),
    "text before the results": (
        [user(), assistant([tool_use("a")]), user([text(), tool_result("a")])],
        _open(1, "a"),
    ),
    "text between the results": (
        [
            user(),
            assistant([tool_use("a"), tool_use("b")]),
            user([tool_result("a"), text(), tool_result("b")]),
        ],
        _open(1, "b"),
    ),
    "result of no call": (
        [user([tool_result("a")]), assistant()],
        _orphan("messages.0.content.0", "a", 0),
    ),
    "result two turns late": (
        [
            user(),
            assistant([tool_use("a")]),
            user([tool_result("a")]),
            assistant(),
            user([text(), tool_result("a")]),
        ],
        _orphan("messages.4.content.1", "a", 4),
    ),
    "two results of one call": (
        [user(), assistant([tool_use("a")]), user([tool_result("a"), tool_result("a")])],
        _at(
            "second_result",
            "messages.2.content.1: each tool_use must have a single result. Found multiple "
            "`tool_result` blocks with id: a",
            "messages.2.content.1",
            2,
        ),
    ),
    "one id in two turns": (
        [
            user(),
            assistant([tool_use("a")]),
            user([tool_result("a")]),
            assistant([tool_use("a")]),
            user([tool_result("a")]),
        ],
        _at(
            "duplicate_id",
            "messages.3.content.0: `tool_use` ids must be unique",
            "messages.3.content.0",
            3,
        ),
    ),
    "an id with other letters": (
        [user(), assistant([tool_use("f.Bash:0")]), user([tool_result("f.Bash:0")])],
        _at(
            "tool_id",
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "messages.1.content.0.tool_use.id",
            1,
        ),
    ),
    "arguments as a text": (
        [user(), assistant([{**tool_use(), "input": "{}"}]), user([tool_result()])],
        _at(
            "arguments",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            "messages.1.content.0.tool_use.input",
            1,
        ),
    ),
    "empty content": (
        [user(""), assistant()],
        _at("empty_content", f"messages.0: {EMPTY}", "messages.0", 0),
    ),
    "no blocks": (
        [user([]), assistant()],
        _at("empty_content", f"messages.0: {EMPTY}", "messages.0", 0),
    ),
    "an empty text block": (
        [user([text(), text("")])],
        _at(
            "empty_text",
            "messages: text content blocks must be non-empty",
            "messages.0.content.1",
            0,
        ),
    ),
    "nothing but white space": (
        [user(" \n")],
        _at(
            "empty_text",
            "messages: text content blocks must contain non-whitespace text",
            "messages.0.content.0",
            0,
        ),
    ),
    "a last word that ends in space": (
        [user(), assistant("so ")],
        _at(
            "trailing_space",
            "messages: final assistant content cannot end with trailing whitespace",
            "messages.1",
            1,
        ),
    ),
    "thinking by the user": (
        [user([text(), thought()])],
        _at(
            "block_role",
            "messages.0: `thinking` blocks can only be in `assistant` messages",
            "messages.0.content.1",
            0,
        ),
    ),
    "unknown block": (
        [user([{"type": "riddle"}])],
        _at(
            "block_type",
            "messages.0.content.0: Input tag 'riddle' found using 'type' does not match any of "
            "the expected tags",
            "messages.0.content.0",
            0,
        ),
    ),
    "thinking without a signature": (
        [user(), assistant([{"type": "thinking", "thinking": "hm"}, text()])],
        _at(
            "thinking_shape",
            "messages.1.content.0.thinking.signature: Field required",
            "messages.1.content.0.signature",
            1,
        ),
    ),
    "a server tool without its result": (
        [user(), assistant([SEARCH, text()])],
        _at(
            "open_call",
            "messages.1: `web_search` tool use with id `srv_1` was found without a corresponding "
            "`web_search_tool_result` block",
            "messages.1",
            1,
        ),
    ),
    "a call of a program that is not there": (
        [user(), assistant([{**tool_use(), **CALLED}]), user([tool_result()])],
        _at(
            "orphan_call",
            "messages.1.content.0: the caller `srv_1` was not found in a `server_tool_use` block "
            "before it",
            "messages.1.content.0",
            1,
        ),
    ),
    "an image in a system message": (
        [user(), {"role": "system", "content": [{"type": "image", "source": {}}]}],
        _at(
            "block_role",
            "messages.1: `image` blocks cannot be in `system` messages",
            "messages.1.content.0",
            1,
        ),
    ),
    "a server result without its call": (
        [user(), assistant([FOUND, text()])],
        _at(
            "orphan_result",
            "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` "
            "blocks: srv_1. Each `web_search_tool_result` block must have a corresponding "
            "`server_tool_use` block before it.",
            "messages.1.content.0",
            1,
        ),
    ),
    "a message that is no object": (
        [user(), "x"],
        _at("shape", "messages.1: Input should be a valid dictionary", "messages.1", 1),
    ),
    "no content": (
        [{"role": "user"}],
        _at("shape", "messages.0.content: Field required", "messages.0", 0),
    ),
    "blocks that are no objects": (
        [user(["x"])],
        _at("shape", "messages.0.content: Input should be a valid dictionary", "messages.0", 0),
    ),
}


@pytest.mark.parametrize(("messages", "breach"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_the_only_breach_and_has_the_provider_text(
    messages: list[Any], breach: Breach
) -> None:
    assert check(messages) == [breach]


def test_calls_at_the_end_may_wait_while_the_turn_is_not_complete() -> None:
    assert check([user(), assistant([tool_use()])], complete=False) == []
    assert check([user(), assistant([tool_use("a")]), user()], complete=False) == [_open(1, "a")]


def _body(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": messages, **more}


def test_no_more_than_four_breakpoints_are_taken() -> None:
    marked = {**text(), "cache_control": {"type": "ephemeral"}}
    assert check(_body([user([marked, marked])], system=[marked, marked])) == []
    assert check(_body([user([marked, marked])], system=[marked, marked, marked])) == [
        Breach(
            "cache_control",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "cache_control",
        )
    ]


ENABLED = {"type": "enabled", "budget_tokens": 1024}


def test_with_thinking_enabled_a_tool_loop_starts_with_its_thinking() -> None:
    bare = [user(), assistant([tool_use()]), user([tool_result()])]
    with_thought = [user(), assistant([thought(), tool_use()]), user([tool_result()])]
    assert check(_body(bare)) == []
    assert check(_body(with_thought, thinking=ENABLED)) == []
    found = check(_body(bare, thinking=ENABLED))
    assert [breach.rule for breach in found] == ["thinking_first"]
    assert found[0].message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`."
    )


def test_with_thinking_enabled_thinking_stands_first_in_its_turn() -> None:
    late = [user(), assistant([text(), thought(), text("so")]), user()]
    assert check(_body(late)) == []
    assert check(_body(late, thinking=ENABLED)) == [
        Breach(
            "thinking_first",
            "messages.1.content.0: If an assistant message contains any thinking blocks, the "
            "first block must be `thinking` or `redacted_thinking`. Found `text`.",
            "messages.1.content.0",
            index=1,
        )
    ]
