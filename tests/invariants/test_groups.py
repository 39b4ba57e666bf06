from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.errors import MessageError
from ctxgc.invariants import ALL_INVARIANTS, anchors, check, cuts, for_format, groups
from ctxgc.testing import check_history
from tests.wire.histories import broken_histories, histories, random_history
from tests.wire.talk import ALL, calls, parsed, results, says, thinks, user

REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def test_every_promise_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len({each.id for each in ALL_INVARIANTS}) == len(ALL_INVARIANTS)
    assert all(each.sentence.endswith(".") for each in ALL_INVARIANTS)
    assert {each for form in ALL for each in for_format(form)} == set(ALL_INVARIANTS)


def test_an_empty_history_breaks_nothing() -> None:
    assert (check([]), groups([]), anchors([]), cuts([])) == ([], [], frozenset(), [0])


def test_a_batch_and_its_results_are_one_group() -> None:
    chat = parsed("openai", user(), calls("openai", "a", "b"), results("openai", "b", "a"), says())
    assert groups(chat) == [(0,), (1, 2, 3), (4,)]


def test_parallel_calls_of_one_response_and_their_reasoning_are_one_group() -> None:
    history = parsed(
        "responses", user(), [REASONING], says("look"), calls("responses", "a", "b"),
        results("responses", "a"), user("hm"), results("responses", "b"), says(),
    )  # fmt: skip
    assert groups(history) == [(0,), (1, 2, 3, 4, 5, 7), (6,), (8,)]


def test_a_message_in_front_of_calls_without_reasoning_is_free() -> None:
    history = parsed("responses", says("look"), calls("responses", "a"), results("responses", "a"))
    assert groups(history) == [(0,), (1, 2)]


def test_a_program_keeps_the_calls_that_it_made() -> None:
    owned = {"caller": {"type": "program", "caller_id": "p"}}
    items = [
        {"type": "program", "id": "pr_1", "call_id": "p", "code": "x", "fingerprint": "f"},
        {**calls("responses", "a")[0], **owned},
        {**results("responses", "a")[0], **owned},
        {"type": "program_output", "id": "po_1", "call_id": "p", "result": "x"},
    ]
    assert groups(parsed("responses", user(), items, says())) == [(0,), (1, 2, 3, 4), (5,)]


def test_thinking_stays_with_the_answer_that_completes_it() -> None:
    thought = [{"role": "assistant", "content": [thinks()]}]
    assert groups(parsed("anthropic", user(), thought, says())) == [(0,), (1, 2)]


def test_the_first_user_message_of_anthropic_is_an_anchor() -> None:
    reminder = [{"role": "system", "content": "be brief"}]
    assert anchors(parsed("anthropic", reminder, user(), says())) == {1}
    assert anchors(parsed("openai", user(), says())) == frozenset()


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False), st.booleans())
def test_a_valid_history_without_any_of_its_groups_is_valid(
    form: Format, rng: Random, pending: bool
) -> None:
    history = wire.parse_history(random_history(rng, form, pending=pending), form)
    kept = anchors(history)
    gone = {
        index
        for group in groups(history)
        if not kept.intersection(group) and rng.random() < 0.5
        for index in group
    }
    left = [message for index, message in enumerate(history) if index not in gone]
    assert check(left, complete=not pending) == []
    ignored = ("duplicate_id", "empty_history", "trailing_space")
    judged = check_history(wire.render(left), form, complete=not pending, ignore=ignored)
    assert judged == []


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False), st.booleans())
def test_both_sides_of_a_cut_keep_every_promise(form: Format, rng: Random, pending: bool) -> None:
    history = wire.parse_history(random_history(rng, form, pending=pending), form)
    for position in cuts(history):
        assert check(history[:position], complete=False) == []
        assert check(history[position:], complete=False) == []


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_a_position_that_is_no_cut_parts_something(form: Format, rng: Random) -> None:
    history = wire.parse_history(random_history(rng, form), form)
    spans = [group for group in groups(history) if len(group) > 1]
    for position in set(range(len(history) + 1)) - set(cuts(history)):
        parted = any(group[0] < position <= group[-1] for group in spans)
        assert parted or check(history[position:], complete=False) != []


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_groups_hold_every_message_once_and_in_order(form: Format, rng: Random) -> None:
    history = wire.parse_history(random_history(rng, form), form)
    found = groups(history)
    assert sorted(index for group in found for index in group) == list(range(len(history)))
    assert [group[0] for group in found] == sorted(group[0] for group in found)
    assert all(list(group) == sorted(group) for group in found)


@pytest.mark.parametrize("form", ALL)
@given(st.data())
def test_what_a_known_history_holds_is_not_looked_at_again(
    form: Format, data: st.DataObject
) -> None:
    known = wire.parse_history(data.draw(histories(form)), form)
    try:
        other = wire.parse_history(data.draw(broken_histories(form)), form)
    except MessageError:
        reject()
    mixed = data.draw(st.permutations([*known, *other]))
    assert check(mixed, known=known) == check(mixed)


def test_an_empty_answer_is_known_only_at_the_end() -> None:
    known = parsed("anthropic", user(), [{"role": "assistant", "content": ""}])
    assert check(known, known=known) == []
    longer = [*known, *parsed("anthropic", user())]
    assert [each.promise for each in check(longer, known=known)] == ["P14.content"]
