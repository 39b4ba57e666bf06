from __future__ import annotations

from typing import Any

import pytest

from ctxgc.invariants import ArgumentsAreJson, is_json
from tests.wire.talk import parsed

ARGUMENTS = ArgumentsAreJson()


@pytest.mark.parametrize(
    "text", ["{}", '{"a": 1e2}', " [1] ", '{"n": ' + "9" * 5_000 + "}", '{"s": "\\ud83d"}', "null"]
)
def test_json_of_the_standard_is_json(text: str) -> None:
    assert is_json(text)


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": "cut', "{'a': 1}", "NaN", '{"a": Infinity}', "[" * 100_000, "{} {}"]
)
def test_anything_else_is_not(text: str) -> None:
    assert not is_json(text)


def _call(arguments: str) -> list[dict[str, Any]]:
    function = {"name": "Bash", "arguments": arguments}
    return [
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    ]


def test_broken_arguments_are_named_by_their_call() -> None:
    (found,) = ARGUMENTS.check(parsed("openai", _call('{"path": "src/a')))
    assert (found.index, found.call_id, found.promise) == (0, "a", "P1.arguments")
    assert found.provider_error == "failed to parse tool call arguments as json"


def test_the_old_form_of_a_function_call_is_checked_too() -> None:
    old = [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{"}}]
    assert [each.call_id for each in ARGUMENTS.check(parsed("openai", old))] == ["function:f"]


def test_free_form_tools_take_any_text() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}
    item = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select"}
    chat = parsed("openai", [{"role": "assistant", "content": None, "tool_calls": [custom]}])
    assert ARGUMENTS.check(chat) == ARGUMENTS.check(parsed("responses", [item])) == []


def test_what_the_provider_ran_itself_is_not_ours_to_judge() -> None:
    item = {"type": "mcp_call", "id": "m1", "name": "f", "arguments": "{", "server_label": "s"}
    assert ARGUMENTS.check(parsed("responses", [item])) == []
