"""The chart as data: nothing of S4's is missing, nothing turns in circles."""

from __future__ import annotations

from collections import Counter

from ctxgc.guard import State
from ctxgc.guard.recovery import NEXT, READY, TRANSITIONS, chart
from tools.requirement_scan import ROOT


def test_every_outcome_of_a_state_leads_to_one_state() -> None:
    assert len(NEXT) == len(TRANSITIONS) == 32


def test_every_state_can_be_reached_and_all_but_two_are_left() -> None:
    entered = {arrow.target for arrow in TRANSITIONS}
    left = {arrow.source for arrow in TRANSITIONS}
    assert set(State) - entered == {State.CALL_REQUESTED}
    assert set(State) - left == {State.CALL_COMPLETE, State.STOPPED}


def test_no_path_over_the_chart_comes_back_to_a_state() -> None:
    """So every walk ends: states without an arrow into them are taken out until none is left."""
    arrows = [(arrow.source, arrow.target) for arrow in TRANSITIONS]
    states = set(State)
    while states:
        entered = Counter(target for _, target in arrows)
        free = {state for state in states if not entered[state]}
        assert free
        states -= free
        arrows = [(source, target) for source, target in arrows if source not in free]


def test_the_call_is_sent_from_two_states() -> None:
    before_the_end = {a.source for a in TRANSITIONS if a.target is State.CALL_COMPLETE}
    assert before_the_end == READY


def test_the_docs_show_the_chart_as_it_is() -> None:
    page = (ROOT / "docs" / "concepts" / "guard.md").read_text(encoding="utf-8")
    assert chart() in page
