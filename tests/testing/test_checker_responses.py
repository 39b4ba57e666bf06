"""Each rule of the Responses API, broken once and kept once, with the provider's text."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.testing import Breach, IssuedItems
from ctxgc.testing.checker_openai import quoted
from ctxgc.testing.checker_responses import TYPES, check
from tests.testing.builders import function_call, output, reasoning, said, user

PROGRAM = {"type": "program", "call_id": "p", "code": "", "fingerprint": ""}
PROGRAM_OUTPUT = {"type": "program_output", "call_id": "p", "result": "", "status": "completed"}
CALLED = {"caller": {"type": "program", "caller_id": "p"}}

KEPT: dict[str, list[dict[str, Any]]] = {
    "plain messages": [user(), said(), user("go on")],
    "a call and its output": [user(), function_call(), output()],
    "a message between a call and its output": [user(), function_call(), user(), output()],
    "parallel calls answered in any order": [
        user(), function_call("a"), function_call("b"), output("b"), output("a"),
    ],
    "an id used again": [
        user(), function_call("a"), output("a"), function_call("a"), output("a"),
    ],
    "reasoning before a call": [user(), reasoning(), function_call("a"), output("a")],
    "reasoning before reasoning before text": [user(), reasoning(), reasoning("rs_2"), said()],
    "a custom tool": [
        user(),
        {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ],
    "a local shell that names its call by its id": [
        user(), {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {}},
        {"type": "local_shell_call_output", "id": "c", "output": "{}"},
    ],
    "a patch without words": [
        user(), {"type": "apply_patch_call", "call_id": "c", "operation": {}},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
    ],
    "an asynchronous call that still runs": [user(), {**function_call(), "async": True}, said()],
    "an asynchronous call that is answered later": [
        user(), {**function_call(), "async": True}, said(), output(),
    ],
    "a program that goes on": [user(), PROGRAM, {**function_call(), **CALLED}, output()],
    "a program that is done": [user(), PROGRAM, PROGRAM_OUTPUT, said()],
    "a reference without its type": [user(), {"id": "msg_9"}, user("go on")],
    "a web search of the provider": [user(), {"type": "web_search_call", "id": "ws_1"}, said()],
}  # fmt: skip


@pytest.mark.parametrize("items", KEPT.values(), ids=KEPT.keys())
def test_what_the_provider_takes_has_no_breach(items: list[dict[str, Any]]) -> None:
    assert check(items) == []
    assert check({"model": "m", "input": items}) == []


def test_an_input_text_is_a_history_of_its_own() -> None:
    assert check({"model": "m", "input": "hello"}) == []


BROKEN: dict[str, tuple[list[Any], Breach]] = {
    "no items": (
        [],
        Breach(
            "empty_history",
            "Invalid 'input': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            "input",
            "empty_array",
        ),
    ),
    "a program that was talked over": (
        [user(), PROGRAM, said()],
        Breach("open_call", "No tool output found for program p.", "input", index=1),
    ),
    "a call of a program that is not there": (
        [user(), {**function_call("a"), **CALLED}, output("a")],
        Breach("orphan_call", "No program found for caller_id p.", "input", index=1),
    ),
    "output of no call": (
        [user(), output("a")],
        Breach(
            "orphan_result",
            "No tool call found for function call output with call_id a.",
            "input",
            index=1,
        ),
    ),
    "output before its call": (
        [user(), output("a"), function_call("a"), output("a")],
        Breach(
            "orphan_result",
            "No tool call found for function call output with call_id a.",
            "input",
            index=1,
        ),
    ),
    "two outputs of one call": (
        [user(), function_call("a"), output("a"), output("a")],
        Breach(
            "orphan_result",
            "No tool call found for function call output with call_id a.",
            "input",
            index=3,
        ),
    ),
    "open call": (
        [user(), function_call("a"), function_call("b"), output("b")],
        Breach("open_call", "No tool output found for function call a.", "input", index=1),
    ),
    "output of another kind of call": (
        [
            user(),
            {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
            {"type": "custom_tool_call_output", "call_id": "d", "output": "1"},
        ],
        Breach(
            "orphan_result",
            "No tool call found for custom tool call output with call_id d.",
            "input",
            index=3,
        ),
    ),
    "reasoning at the end": (
        [user(), reasoning()],
        Breach(
            "reasoning_alone",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "input",
            index=1,
        ),
    ),
    "reasoning before the user": (
        [user(), reasoning(), user()],
        Breach(
            "reasoning_alone",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "input",
            index=1,
        ),
    ),
    "one item twice": (
        [user(), said(id="msg_1"), said(id="msg_1")],
        Breach(
            "duplicate_id",
            "Duplicate item found with id msg_1. Remove duplicate items from your input and try "
            "again.",
            "input",
            index=2,
        ),
    ),
    "an id of another kind": (
        [user(), said(id="fc_1")],
        Breach(
            "item_id",
            "Invalid 'input[1].id': 'fc_1'. Expected an ID that begins with 'msg'.",
            "input[1].id",
            "invalid_value",
            index=1,
        ),
    ),
    "unknown type": (
        [{"type": "thought"}],
        Breach(
            "item_type",
            f"Invalid value: 'thought'. Supported values are: {quoted(TYPES)}.",
            "input[0].type",
            "invalid_value",
            index=0,
        ),
    ),
    "unknown role": (
        [{"role": "tool", "content": "x"}],
        Breach(
            "role",
            "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and "
            "'user'.",
            "input[0].role",
            "invalid_value",
            index=0,
        ),
    ),
    "a part of another role": (
        [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
        Breach(
            "content",
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            "input[0].content[0]",
            "invalid_value",
            index=0,
        ),
    ),
    "no content": (
        [{"role": "user"}],
        Breach(
            "shape",
            "Missing required parameter: 'input[0].content'.",
            "input[0].content",
            "missing_required_parameter",
            index=0,
        ),
    ),
    "arguments that are no JSON": (
        [user(), function_call("a", arguments="{x"), output("a")],
        Breach(
            "arguments",
            "Failed to parse tool call arguments as JSON: 'input[1].arguments'.",
            "input[1].arguments",
            "invalid_value",
            index=1,
        ),
    ),
    "no output": (
        [user(), function_call("a"), {"type": "function_call_output", "call_id": "a"}],
        Breach(
            "shape",
            "Missing required parameter: 'input[2].output'.",
            "input[2].output",
            "missing_required_parameter",
            index=2,
        ),
    ),
    "an item that is no object": (
        [7],
        Breach(
            "shape",
            "Invalid type for 'input[0]': expected an object, but got an integer instead.",
            "input[0]",
            "invalid_type",
            index=0,
        ),
    ),
}


@pytest.mark.parametrize(("items", "breach"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_is_the_only_breach_and_has_the_provider_text(
    items: list[Any], breach: Breach
) -> None:
    assert check(items) == [breach]


def test_calls_at_the_end_may_wait_while_the_turn_is_not_complete() -> None:
    waiting = [user(), function_call("a"), function_call("b"), output("b")]
    assert check(waiting, complete=False) == []
    assert [b.rule for b in check([*waiting, user()], complete=False)] == ["open_call"]


@pytest.fixture
def items() -> IssuedItems:
    items = IssuedItems()
    secret = reasoning("rs_9", encrypted_content="gAAAsecret")
    items.remember("resp_1", [user()], [secret, function_call("a", id="fc_9")])
    return items


def test_issued_items_go_back_whole_or_without_their_ids(items: IssuedItems) -> None:
    secret = reasoning("rs_9", encrypted_content="gAAAsecret")
    whole = [user(), secret, function_call("a", id="fc_9"), output("a")]
    assert check(whole, issued=items) == []
    assert check([user(), function_call("a"), output("a")], issued=items) == []


def test_an_issued_call_without_its_reasoning_is_refused(items: IssuedItems) -> None:
    text = (
        "Item 'fc_9' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_9'."
    )
    assert check([user(), function_call("a", id="fc_9"), output("a")], issued=items) == [
        Breach("reasoning_missing", text, "input", index=1)
    ]


def test_encrypted_reasoning_must_be_what_was_issued(items: IssuedItems) -> None:
    changed = reasoning("rs_9", encrypted_content="gAAAchanged")
    assert check([user(), changed, said()], issued=items) == [
        Breach(
            "reasoning_changed",
            "The encrypted content gAAA...nged could not be verified.",
            None,
            "invalid_encrypted_content",
            index=1,
        )
    ]


def test_a_reference_must_name_a_stored_item(items: IssuedItems) -> None:
    known = {"type": "item_reference", "id": "rs_9"}
    unknown = {"type": "item_reference", "id": "rs_7"}
    assert check([user(), known, said()], issued=items) == []
    assert check([user(), unknown, said()], issued=items) == [
        Breach("unknown_item", "Item with id 'rs_7' not found.", "input", status=404, index=1)
    ]


def test_a_response_that_was_not_stored_can_be_neither_continued_nor_referred_to() -> None:
    items = IssuedItems()
    items.remember("resp_2", [user()], [said(id="msg_2")], stored=False)
    assert items.history("resp_2") is None
    assert items.stored("msg_2") is None
