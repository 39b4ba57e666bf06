from __future__ import annotations

import pytest

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.invariants import CallsAndResultsPair, Violation
from tests.wire.talk import ALL, calls, parsed, results, says, user

PAIR = CallsAndResultsPair()


def _found(violations: list[Violation]) -> list[tuple[int, str | None, bool]]:
    return [(each.index, each.call_id, each.pending) for each in violations]


@pytest.mark.parametrize("form", ALL)
def test_an_answered_call_is_in_order(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a", "b"), results(form, "b", "a"), says())
    assert PAIR.check(history) == []


@pytest.mark.parametrize("form", ALL)
def test_a_result_without_a_call_is_an_orphan(form: Format) -> None:
    history = parsed(form, user(), results(form, "a"), says())
    assert _found(PAIR.check(history)) == [(1, "a", False)]


@pytest.mark.parametrize("form", ALL)
def test_a_call_that_the_user_talked_over_has_no_result(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"), user("stop"))
    assert _found(PAIR.check(history)) == [(1, "a", False)]
    assert _found(PAIR.check(history, complete=False)) == [(1, "a", False)]


@pytest.mark.parametrize("form", ALL)
def test_calls_at_the_very_end_may_wait_until_the_history_is_sent(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"))
    assert PAIR.check(history, complete=False) == []
    assert _found(PAIR.check(history)) == [(1, "a", True)]


@pytest.mark.parametrize("form", ["openai", "responses"])
def test_a_batch_of_which_some_results_came_still_waits_for_the_others(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a", "b"), results(form, "b"))
    assert PAIR.check(history, complete=False) == []
    assert [each.call_id for each in PAIR.check(history)] == ["a"]


@pytest.mark.parametrize("form", ALL)
def test_an_id_may_be_used_again_in_a_later_turn(form: Format) -> None:
    turn = [*user(), *calls(form, "functions.Bash:0"), *results(form, "functions.Bash:0"), *says()]
    assert PAIR.check(parsed(form, turn, turn, turn)) == []


@pytest.mark.parametrize("form", ALL)
def test_a_result_answers_the_nearest_earlier_open_call_of_its_id(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"), user(), calls(form, "a"), results(form, "a"))
    assert _found(PAIR.check(history)) == [(1, "a", False)]


def test_the_providers_own_words_come_with_each_breach() -> None:
    orphan, open_call = (
        PAIR.check(parsed("anthropic", user(), results("anthropic", "a")))[0],
        PAIR.check(parsed("responses", calls("responses", "a"), user()))[0],
    )
    assert orphan.provider_error == "unexpected `tool_use_id` found in `tool_result` blocks: a."
    assert open_call.provider_error == "No tool output found for function call a."


def test_a_function_result_does_not_answer_a_custom_tool() -> None:
    custom = [{"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"}]
    history = parsed("responses", user(), custom, results("responses", "a"))
    assert _found(PAIR.check(history)) == [(1, "a", True), (2, "a", False)]


def test_an_asynchronous_call_may_be_answered_much_later_or_never() -> None:
    (call,) = calls("responses", "a")
    asked = [{**call, "async": True}]
    later = [*user(), *says()]
    assert PAIR.check(parsed("responses", user(), asked, later)) == []
    assert PAIR.check(parsed("responses", user(), asked, later, results("responses", "a"))) == []
    history = [*user(), *asked, *later]
    assert wire.repair(history, "responses").messages == history


def test_a_local_shell_is_answered_by_a_functions_result() -> None:
    shell = [{"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls"]}}]
    assert PAIR.check(parsed("responses", user(), shell, results("responses", "a"))) == []


def test_a_reference_to_a_stored_item_may_stand_for_the_call() -> None:
    stored = [{"type": "item_reference", "id": "fc_1"}]
    assert PAIR.check(parsed("responses", user(), stored, results("responses", "a"))) == []


def test_tools_that_the_provider_runs_need_no_result_of_the_client() -> None:
    search = [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]
    assert PAIR.check(parsed("responses", user(), search, says())) == []


@pytest.mark.parametrize("form", ALL)
def test_a_cut_never_parts_a_call_from_its_results(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"), results(form, "a"), says())
    assert sorted(PAIR.cuts(history)) == [0, 1, 3, 4]


@pytest.mark.parametrize("form", ALL)
def test_nothing_is_cut_behind_a_call_that_waits(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"))
    assert sorted(PAIR.cuts(history)) == [0, 1, 2]
