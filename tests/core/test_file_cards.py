"""The views of a file and the cards that they share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import ContextSegment
from ctxgc.core.links import (
    FEW,
    MAX_CARDS,
    WHOLE,
    Views,
    add_view,
    cards,
    cards_of,
    drop_view,
    ids,
    on_card,
    share_a_card,
)
from tests.core.build import seg

RANGES = st.none() | st.tuples(st.integers(0, 400), st.integers(0, 400)).map(sorted).map(tuple)


def view(n: int, lines: tuple[int, int] | None) -> ContextSegment:
    return seg(f"v{n}", file_path="f", line_range=lines)


def filed(views: list[ContextSegment]) -> dict[str, Views]:
    files: dict[str, Views] = {}
    for one in views:
        add_view(files, "f", one)
    return files


def by_card(files: dict[str, Views]) -> dict[int, list[str]]:
    held = files.get("f", ())
    return {card: list(ids(on_card(held, card))) for card in cards_of(held)}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (None, [WHOLE]),
        ((0, 63), [0]),
        ((63, 64), [0, 1]),
        ((0, 64 * MAX_CARDS - 1), list(range(MAX_CARDS))),
        ((0, 64 * MAX_CARDS), [WHOLE]),
        ((0, 10**12), [WHOLE]),
    ],
)
def test_a_range_of_lines_is_a_bounded_number_of_cards(
    lines: tuple[int, int] | None, expected: list[int]
) -> None:
    assert list(cards(lines)) == expected


@given(RANGES, RANGES)
def test_views_share_a_card_when_one_is_on_both_or_one_is_the_whole_file(
    one: tuple[int, int] | None, other: tuple[int, int] | None
) -> None:
    some, others = cards(one), cards(other)
    both = set(some) & set(others)
    assert share_a_card(some, others) is bool(both or WHOLE in (*some, *others))


@pytest.mark.parametrize("size", [1, FEW, FEW + 1, FEW * 3])
def test_few_and_many_views_answer_alike_and_nobody_is_there_twice(size: int) -> None:
    views = [view(n, (n * 30, n * 30 + 100) if n % 3 else None) for n in range(size)]
    expected: dict[int, list[str]] = {}
    for one in views:
        for card in cards(one.line_range):
            expected.setdefault(card, []).append(one.segment_id)
    assert by_card(filed([*views, views[0]])) == expected


@pytest.mark.parametrize("size", [2, FEW, FEW + 1, FEW * 3])
def test_views_drop_out_at_any_size_and_the_file_goes_with_the_last(size: int) -> None:
    views = [view(n, (n * 30, n * 30 + 100) if n % 3 else None) for n in range(size)]
    files = filed(views)
    for gone in (views[0], views[0], view(999, None)):
        drop_view(files, "f", gone)
    assert by_card(files) == by_card(filed(views[1:]))
    for gone in views[1:]:
        drop_view(files, "f", gone)
    drop_view(files, "f", views[0])
    assert files == {}
