"""The cover and its stub: verbatim lines, and what the lines do not hold by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import Shares
from ctxgc.collector.digest import kept_lines
from ctxgc.collector.worth import Census, Passage, PriceCover, cover, whole
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
def test_the_lines_of_a_cover_stay_verbatim(text: Text, shares: Shares, others: list[Text]) -> None:
    kept = covered(text, shares, others).kept
    lines = kept_lines(text, kept).split("\n") if kept else []
    assert [line for line in lines if line != "…"] == [text.lines[n] for n in kept]


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
    assert kept_lines(text, (0, 3)).split("\n") == ["first_name", "…", "last_name"]
    assert kept_lines(text, ()) == ""


def test_an_excerpt_marks_the_gaps_between_its_lines() -> None:
    passage = Passage(Text("one\ntwo\nthree\nfour\nfive"))
    assert passage.excerpt() == ""
    passage.kept = [3, 0, 1]
    assert passage.excerpt() == "one\ntwo\n[...]\nfour"


def test_a_long_line_of_which_all_stays_is_one_line() -> None:
    long = ", ".join(f"name_{n}" for n in range(60))
    passage = Passage(Text(f"one\n{long}"))
    passage.kept = list(range(1, len(passage.text.lines)))
    assert passage.excerpt() == long
