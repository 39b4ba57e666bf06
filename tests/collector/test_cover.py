"""The cover and its stub: verbatim lines, and what the lines do not hold by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import Shares
from ctxgc.collector.digest import price_stub as stub
from ctxgc.collector.worth import Census, PriceCover, cover, whole
from ctxgc.core import Text
from tests.collector.agent import HOW, view_of

TEXTS = st.builds(view_of, st.integers(0, 2), st.integers(0, 20), st.integers(1, 30)).map(Text)
SHARES = st.builds(Shares, st.floats(0, 1), st.floats(0, 1))


def covered(
    text: Text, shares: Shares, others: list[Text], lines: list[int] | None = None
) -> PriceCover:
    census = Census()
    for each in (text, *others):
        census.enter(whole(each), new=True)
    shown = range(len(text.lines)) if lines is None else lines
    return cover(text, shown, shares, census=census, how=HOW, size=text.size)


@given(TEXTS, SHARES, st.lists(TEXTS, max_size=2))
def test_a_stub_holds_its_lines_verbatim_and_every_name_that_the_cover_says(
    text: Text, shares: Shares, others: list[Text]
) -> None:
    found = covered(text, shares, others)
    said = stub(text, found, tokens=9, why="seen", recall="recall(1)")
    head, *lines = said.split("\n")
    assert head == "[ctxgc: 9 tokens, seen; recall(1)]"
    names = lines.pop(0).removeprefix("Names: ").split(" ") if found.listed else []
    assert tuple(names) == found.listed
    assert [line for line in lines if line != "…"] == [text.lines[n] for n in found.kept]


@given(TEXTS, SHARES, st.lists(TEXTS, max_size=2))
def test_it_keeps_within_its_shares(text: Text, shares: Shares, others: list[Text]) -> None:
    found = covered(text, shares, others)
    listed = found.listed_chars
    assert found.chars - listed <= shares.lines * text.size
    assert listed <= max(HOW.least_names, shares.names * text.size)
    assert found.chars >= sum(len(text.lines[n]) for n in found.kept) + listed


@given(TEXTS, st.lists(TEXTS, max_size=2))
def test_with_room_enough_every_name_that_nobody_else_holds_stays(
    text: Text, others: list[Text]
) -> None:
    found = covered(text, Shares(2.0, 2.0), others)
    elsewhere = frozenset().union(*(each.names for each in others))
    held = frozenset(found.listed).union(*(text.line_names[n] for n in found.kept))
    assert text.names - elsewhere <= held


def test_what_others_hold_costs_nothing() -> None:
    text = Text(view_of(0, 0, 20))
    assert covered(text, Shares(1.0, 1.0), [text]) == PriceCover(kept=(), listed=(), chars=0)


def test_lines_that_are_not_shown_are_not_kept() -> None:
    text = Text(view_of(0, 0, 20))
    assert set(covered(text, Shares(1.0, 1.0), [], [3, 7]).kept) <= {3, 7}


def test_a_gap_that_no_number_shows_gets_a_mark() -> None:
    text = Text("first_name\nplain\nplain\nlast_name")
    found = PriceCover(kept=(0, 3), listed=(), chars=0)
    assert stub(text, found, tokens=1, why="seen", recall="").split("\n") == [
        "[ctxgc: 1 tokens, seen]", "first_name", "…", "last_name",
    ]  # fmt: skip
