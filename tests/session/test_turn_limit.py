"""`max_turns` holds at every request, with every strategy that collects."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import GCTriggerReason
from ctxgc.core import SegmentType
from ctxgc.session import Session
from tests.requirements import requirement
from tests.session.build import make, requests_in
from tests.strategies.build import turn

COLLECTORS = ("gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep")


def limited(plugin: str, limit: int, **options: object) -> Session:
    """Return a session whose window is large enough for everything, with a limit of turns."""
    return make(50_000, plugin, max_turns=limit, **options)


def converse(session: Session, turns: int, size: int = 5, tools: int = 0) -> list[int]:
    """Ask and answer; return how many turns the view has at each request, two for each turn."""
    seen: list[int] = []
    for number in range(turns):
        question, *answer = turn(number, size, tools=tools)
        session.append(question)
        session.messages()
        seen.append(session.usage().turns)
        session.extend(answer)
        session.messages()
        seen.append(session.usage().turns)
    return seen


@requirement("S3.config.max-turns-holds")
@pytest.mark.parametrize("plugin", COLLECTORS)
@given(st.integers(2, 9), st.integers(0, 7), st.integers(1, 40), st.integers(0, 2))
def test_no_request_carries_more_turns_than_the_limit(
    plugin: str, limit: int, preserve: int, size: int, tools: int
) -> None:
    session = limited(plugin, limit, preserve_recent_turns=preserve)
    assert max(converse(session, 14, size, tools)) <= limit
    assert {r.trigger_reason for r in session.gc_history} == {GCTriggerReason.TURN_LIMIT}
    assert {r.turns_over for r in session.gc_history} == {0}


@pytest.mark.parametrize("plugin", COLLECTORS)
@given(st.integers(4, 12), st.integers(0, 12))
def test_not_every_new_turn_collects_once_the_limit_holds(
    plugin: str, limit: int, preserve: int
) -> None:
    session = limited(plugin, limit, preserve_recent_turns=preserve)
    converse(session, 40)
    # One short of the limit leaves no room for a turn between the recent ones and the first request.
    if preserve + 1 == limit:
        assert len(session.gc_history) <= 40 - limit
    else:
        assert len(session.gc_history) <= (40 - limit) / 2 + 1


@pytest.mark.parametrize("plugin", COLLECTORS)
@given(st.integers(1, 5), st.integers(0, 2**32))
def test_pins_above_the_limit_stay_and_the_result_says_how_many_turns_are_too_many(
    plugin: str, limit: int, seed: int
) -> None:
    rng = Random(seed)
    session = limited(plugin, limit, preserve_recent_turns=1)
    pinned: list[int] = []
    for number in range(12):
        (segment, *_), *_ = [session.append(message) for message in turn(number, 5)]
        if rng.random() < 0.6:
            session.pin(segment)
            pinned.append(number)
        session.messages()
        over = session.usage().turns - limit
        assert over <= 0 or session.gc_history[-1].turns_over == over
        assert set(pinned) <= set(requests_in(session))
        if over > 0:
            assert set(requests_in(session)) == {0, number, *pinned}


@pytest.mark.parametrize("plugin", COLLECTORS)
@given(st.integers(2, 6), st.integers(0, 3), st.booleans())
def test_the_current_task_and_decisions_hold_no_more_turns_than_the_limit(
    plugin: str, limit: int, preserve: int, decides: bool
) -> None:
    session = limited(plugin, limit, preserve_recent_turns=preserve)
    session.set_task("T-1")
    kind: SegmentType = "decision" if decides else "message"
    for number in range(12):
        question, *answer = turn(number, 5)
        session.append(question, type=kind)
        session.messages()
        assert session.usage().turns <= limit
        session.extend(answer)
        session.messages()
        assert session.usage().turns <= limit
    assert requests_in(session)[-1] == 11


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_within_the_limit_of_turns_the_newest_of_the_current_task_stay(plugin: str) -> None:
    session = limited(plugin, 4, preserve_recent_turns=0, threshold_percent=80, target_percent=60)
    for number in range(9):
        session.set_task("T-1" if number in (1, 2, 3) else None)
        session.extend(turn(number, 5))
        session.set_task("T-1")
        session.messages()
    assert requests_in(session) == [0, 2, 3, 8]


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_limit_that_pins_break_is_tried_again_only_when_a_turn_came_in(plugin: str) -> None:
    session = limited(plugin, 2)
    for number in range(4):
        (segment, *_), *_ = [session.append(message) for message in turn(number, 5)]
        session.pin(segment)
    for _ in range(3):
        session.messages()
    assert [r.turns_over for r in session.gc_history] == [2]
    session.extend(turn(4, 5))
    session.messages()
    session.messages()
    assert [r.turns_over for r in session.gc_history] == [2, 3]


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_limit_that_cannot_hold_does_not_keep_room_from_being_made(plugin: str) -> None:
    session = make(2_000, plugin, max_turns=2, preserve_recent_turns=0)
    for number in range(4):
        (segment, *_), *_ = [session.append(message) for message in turn(number, 5)]
        session.pin(segment)
    session.messages()
    session.extend([*turn(4, 5), *({"role": "assistant", "content": "word " * 400},) * 4])
    session.messages()
    assert session.usage().percent_used < 80


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_session_that_could_not_make_room_still_keeps_its_limit_of_turns(plugin: str) -> None:
    session = make(2_000, plugin, max_turns=4, preserve_recent_turns=0)
    (segment, *_) = session.append({"role": "user", "content": "word " * 1_650})
    session.pin(segment)
    session.append({"role": "assistant", "content": "noted"})
    for number in range(12):
        session.extend(turn(number, 3))
        session.messages()
        assert session.usage().turns <= 4


@pytest.mark.parametrize("plugin", ["gc_summarize", "gc_hybrid"])
@given(st.integers(2, 9), st.integers(0, 3), st.integers(1, 40))
def test_with_a_summarizer_the_turns_above_the_limit_become_a_summary(
    plugin: str, limit: int, preserve: int, size: int
) -> None:
    session = limited(
        plugin, limit, preserve_recent_turns=preserve, summarize_middle_turns=20,
        plugin_config={"summarizer": lambda _text: "they talked"},
    )  # fmt: skip
    assert max(converse(session, 14, size)) <= limit
    if size > 20 and preserve + 1 < limit:
        reasons = {item.reason for r in session.gc_history for item in r.removal_list}
        assert reasons <= {"summarized", "middle_summarized", "old_notice"}
