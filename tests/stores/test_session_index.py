"""The index in memory answers the same before and after it has its lists, through every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.stores.search import parse_query
from ctxgc.stores.tables import SessionIndex, SessionIndexes
from tests.stores.places import segment

_texts = st.lists(st.sampled_from(["fox", "hare", "the", "readFile"]), max_size=4).map(" ".join)
_changes = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | _texts), max_size=12)


def _change(index: SessionIndex, changes: list[tuple[str, str | None]]) -> None:
    for order, (key, text) in enumerate(changes):
        if text is None:
            index.drop(key)
        else:
            index.put(key, order, segment(text))


def _answers(index: SessionIndex) -> list[object]:
    asked = ["fox", "the", "hare fox", "read_file"]
    keys = [sorted(slot.key for _, slot, _ in index.having(parse_query(text))) for text in asked]
    return [len(index), index.length, keys, [index.count(word) for word in ("fox", "the", "owl")]]


@given(before=_changes, after=_changes)
def test_lists_change_no_answer(
    before: list[tuple[str, str | None]], after: list[tuple[str, str | None]]
) -> None:
    with_lists, without = SessionIndex("s"), SessionIndex("s")
    _change(with_lists, before)
    with_lists.make_lists()
    _change(with_lists, after)
    _change(without, before + after)
    assert _answers(with_lists) == _answers(without)


def test_many_changes_are_compacted_and_lists_survive_it() -> None:
    index = SessionIndex("s")
    index.make_lists()
    for number in range(2_500):
        index.put("k", number, segment(f"fox {number}"))
    assert (index.count("fox"), index.count("2499"), index.count("2498")) == (1, 1, 0)
    assert not index.is_worth_lists()


def test_each_search_makes_the_lists_of_one_index_that_was_asked_before() -> None:
    indexes = [SessionIndex(name) for name in "abc"]
    waiting = []
    for _ in range(5):
        SessionIndexes(indexes).count("fox")
        waiting.append(sum(index.is_worth_lists() for index in indexes))
    assert waiting == [3, 2, 1, 0, 0]
