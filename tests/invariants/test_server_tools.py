from __future__ import annotations

from typing import Any

import pytest

from ctxgc.invariants import ServerToolsPair, groups
from tests.wire.talk import calls, parsed, results, says, user

SERVER = ServerToolsPair()
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


def _answer(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": list(blocks)}]


def test_both_blocks_of_a_server_tool_stand_in_one_answer() -> None:
    assert SERVER.check(parsed("anthropic", user(), _answer(SEARCH, FOUND))) == []


def test_a_server_result_without_its_call_is_refused() -> None:
    (found,) = SERVER.check(parsed("anthropic", user(), _answer(FOUND)))
    assert (found.index, found.call_id, found.pending) == (1, "s1", False)


def test_a_server_call_without_a_result_may_stand_only_at_the_end() -> None:
    paused = parsed("anthropic", user(), _answer(SEARCH))
    assert SERVER.check(paused, complete=False) == SERVER.check(paused) == []
    spoken_after = parsed("anthropic", user(), _answer(SEARCH, {"type": "text", "text": "so"}))
    assert [each.pending for each in SERVER.check(spoken_after)] == [True]
    talked_over = parsed("anthropic", user(), _answer(SEARCH), user(), says())
    assert [each.index for each in SERVER.check(talked_over, complete=False)] == [1]


def test_a_program_that_calls_the_clients_tools_gets_its_result_in_a_later_answer() -> None:
    program = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}
    output = {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}
    call = calls("anthropic", "a")[0]["content"][0]
    history = parsed(
        "anthropic", user(), _answer(program, call), results("anthropic", "a"), _answer(output)
    )
    assert SERVER.check(history) == []
    assert groups(history) == [(0,), (1, 2, 3)]
    assert sorted(SERVER.cuts(history)) == [0, 1, 4]


def test_a_program_may_call_in_many_answers_and_its_result_is_owed_till_then() -> None:
    program = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}
    output = {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}
    caller = {"caller": {"type": "code_execution_20260120", "tool_id": "s1"}}
    first, second = ({**calls("anthropic", each)[0]["content"][0], **caller} for each in "ab")
    rounds = [
        *user(), *_answer(program, first), *results("anthropic", "a"),
        *_answer(second), *results("anthropic", "b"),
    ]  # fmt: skip
    assert SERVER.check(parsed("anthropic", rounds)) == []
    whole = parsed("anthropic", rounds, _answer(output))
    assert SERVER.check(whole) == []
    assert groups(whole) == [(0,), (1, 2, 3, 4, 5)]
    without = parsed("anthropic", user(), _answer(second), results("anthropic", "b"))
    assert [each.index for each in SERVER.check(without)] == [1]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (
            {"type": "program", "id": "p", "call_id": "a", "code": "", "fingerprint": ""},
            {"type": "program_output", "id": "o", "call_id": "a", "result": "", "status": ""},
        ),
        (
            {"type": "tool_search_call", "arguments": {}},
            {"type": "tool_search_output", "call_id": None, "tools": []},
        ),
        (
            {"type": "mcp_approval_request", "id": "a", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        ),
    ],
)
def test_items_of_the_responses_format_keep_their_partners(
    call: dict[str, Any], result: dict[str, Any]
) -> None:
    turn = [*user(), *says()]
    assert SERVER.check(parsed("responses", user(), [call, result], says())) == []
    assert SERVER.check(parsed("responses", user(), [call])) == []
    assert [v.index for v in SERVER.check(parsed("responses", user(), [call], turn))] == [1]
    assert [v.index for v in SERVER.check(parsed("responses", user(), [result], turn))] == [1]
    stored = [{"id": "msg_1"}]
    assert SERVER.check(parsed("responses", user(), stored, [result], turn)) == []


def test_mcp_blocks_pair_like_other_server_tools() -> None:
    call = {"type": "mcp_tool_use", "id": "s1", "name": "find", "server_name": "m", "input": {}}
    result = {"type": "mcp_tool_result", "tool_use_id": "s1", "is_error": False, "content": []}
    assert SERVER.check(parsed("anthropic", user(), _answer(call, result))) == []
