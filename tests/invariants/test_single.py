from __future__ import annotations

import pytest

from ctxgc.core import Format
from ctxgc.invariants import OneResultPerCall
from tests.wire.talk import ALL, calls, parsed, results, user

SINGLE = OneResultPerCall()


@pytest.mark.parametrize("form", ALL)
def test_a_second_result_of_one_call_is_refused(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a"), results(form, "a"), results(form, "a"))
    assert [(each.index, each.text) for each in SINGLE.check(history)] == [
        (3, "a second result answers the call 'a'")
    ]


@pytest.mark.parametrize("form", ALL)
def test_two_calls_of_one_batch_must_not_share_an_id(form: Format) -> None:
    history = parsed(form, user(), calls(form, "a", "a"), results(form, "a"))
    assert [each.text for each in SINGLE.check(history)] == ["two calls share the id 'a'"]


@pytest.mark.parametrize("form", ALL)
def test_batches_of_different_turns_may_share_ids(form: Format) -> None:
    turn = [*user(), *calls(form, "a", "b"), *results(form, "a", "b")]
    assert SINGLE.check(parsed(form, turn, turn)) == []


def test_a_function_and_a_custom_tool_may_share_an_id() -> None:
    custom = [{"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"}]
    assert SINGLE.check(parsed("responses", calls("responses", "a"), custom)) == []
