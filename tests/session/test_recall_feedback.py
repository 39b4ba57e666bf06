"""Recall feedback: similar content stays longer after something that had left was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import GCConfig, Session
from ctxgc.client.tools import recall_tools
from ctxgc.core import FORMATS, ContextSegment, Format, Message
from ctxgc.errors import UnknownHandleError
from ctxgc.guard import ThrashBreaker
from ctxgc.guard.monitor import FIRST_PAUSE, LEAST_BACK, LONGEST_PAUSE
from ctxgc.session import RECALL_CALL
from tests.collector.agent import (
    FIXED,
    LONG,
    Agent,
    Json,
    Step,
    drive,
    opened,
    steps,
)
from tests.examples import one_in
from tests.fakes import Clock, QuarterCounter
from tests.session.build import Insistent, events_of, reckless
from tests.session.random_walk import faults

WORK: list[Step] = [("test", 30), ("test", 30), ("grep", "harvest", 30), ("test", 30)]


def stashed(session: Session, command: str = "pytest") -> ContextSegment:
    found = [s for s in session.segments() if s.tier == "stashed" and s.part == "tool_result"]
    return next(s for s in found if command in (s.command or ""))


def shortened(session: Session) -> list[Message]:
    return [m for m in session.history if m.message_id in session.inspect().view.originals]


def test_a_recall_leaves_a_ghost_and_the_like_of_it_no_longer_leaves_young() -> None:
    session, other, agent = opened(plugin_config=FIXED), opened(plugin_config=FIXED), Agent()
    for each in (session, other):
        drive(each, WORK, agent)
    session.recall(stashed(session).segment_id)
    assert session.inspect().state.ghosts.to_doc() == {
        "command pytest": [1.0, session.inspect().state.requests]
    }
    known = {m.message_id for m in session.history}
    for each in (session, other):
        drive(each, [("test", 30), ("grep", "saddles", 30), ("grep", "lantern", 30)], Agent())
    new = [[m.message_id not in known for m in shortened(each)] for each in (session, other)]
    assert sum(new[0]) < sum(new[1])
    held = [r.details["ghosts"] for r in session.gc_history if "ghosts" in r.details]
    assert held
    assert all(0 < weight <= 1 for each in held for weight in each.values())
    assert not any("ghosts" in r.details for r in other.gc_history)


def test_a_view_of_a_file_that_was_recalled_is_held_longer() -> None:
    assert _left_at(haunted=False) < _left_at(haunted=True)


def _left_at(*, haunted: bool) -> int:
    """Return the request before which the first view of a file that is edited later was shortened."""
    session, agent = opened(), Agent()
    drive(session, [("read", 0, 0, 60)], agent)
    view, left = session.history[-1].message_id, [0]
    shown = session.inspect().heap.get(session.inspect().segmenter.segment_ids(view)[0])
    for _ in range(4 if haunted else 0):
        session.inspect().state.ghosts.note(shown, session.inspect().state.requests)

    def look(_: int) -> None:
        left[0] += view not in session.inspect().view.originals

    drive(session, [*LONG[3:], *LONG], agent, each=look)
    return left[0]


def test_the_recall_tool_and_a_host_that_answers_itself_leave_ghosts() -> None:
    session = opened()
    drive(session, LONG)
    segment = stashed(session)
    recall, _ = recall_tools(session)
    assert recall.function(handle=segment.segment_id) == segment.text
    assert list(session.inspect().state.ghosts.to_doc()) == ["command pytest"]
    (view, *_) = [s for s in session.segments() if s.tier == "stashed" and s.access == "read"]
    session.note_fault(view.segment_id)
    assert list(session.inspect().state.ghosts.to_doc()) == [
        "command pytest",
        f"file {view.file_path}",
    ]
    with pytest.raises(UnknownHandleError):
        session.note_fault("h-nothing")


def test_reading_what_is_still_in_view_leaves_no_ghost() -> None:
    session = opened()
    drive(session, [("read", 0, 0, 60)])
    (shown,) = [s for s in session.segments() if s.part == "tool_result"]
    session.note_fault(shown.segment_id)
    session.recall(shown.segment_id)
    assert session.inspect().state.ghosts.to_doc() == {}


def test_ghosts_survive_a_restart(tmp_path: Path) -> None:
    store: Json = {"store": f"json:{tmp_path / 'stash.json'}", "session_id": "long"}
    with opened(**store) as session:
        drive(session, WORK)
        session.recall(stashed(session).segment_id)
        known, requests = session.inspect().state.ghosts.to_doc(), session.inspect().state.requests
    with opened(**store) as session:
        assert session.inspect().state.ghosts.to_doc() == known != {}
        assert session.inspect().state.requests == requests > 0


def most_collections(requests: int) -> int:
    """Count naively: so many collections until it is noticed, then a pause, twice as long each time."""
    count, pause, request = 0, FIRST_PAUSE, 0
    while request < requests:
        count, request = count + LEAST_BACK, request + pause
        pause = min(LONGEST_PAUSE, 2 * pause)
    return count


@one_in(12)
@given(steps(), st.sampled_from(FORMATS))
def test_an_agent_that_asks_for_all_that_left_soon_has_its_peace(
    work: list[Step], format_: Format
) -> None:
    session, whole = reckless(), opened(plugin="gc_none")
    told = events_of(session)
    long = [*work, *LONG, *LONG, *LONG]
    drive(session, long, Agent(format_), each=Insistent(session))
    drive(whole, long, Agent(format_))
    assert 0 < len(session.inspect().log.applied) <= most_collections(len(long))
    assert faults(session) == []
    lost = {part.text for m in whole.history for part in m.parts}
    assert lost <= {s.text for s in session.segments()}
    figures = [e.data for e in told if e.kind == "thrashing"]
    pauses = [data["pause"] for data in figures]
    assert pauses == [FIRST_PAUSE * 2**n for n in range(len(pauses))]
    said = [r.details["thrashing"] for r in session.gc_history if "thrashing" in r.details]
    assert said == figures[: len(said)]


def test_without_the_breaker_it_would_go_on_and_on(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    for is_on in (True, False):
        if not is_on:
            monkeypatch.setattr(ThrashBreaker, "is_paused", lambda *_: False)
        session = reckless()
        drive(session, LONG * 4, each=Insistent(session))
        counts.append(len(session.inspect().log.applied))
    assert counts[0] <= most_collections(4 * len(LONG)) < counts[1]


def test_where_room_must_be_made_collections_go_deeper_and_become_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []
    for is_on in (True, False):
        if not is_on:
            monkeypatch.setattr(ThrashBreaker, "take_depth", lambda _: 1.0)
        session = narrow()
        told = events_of(session)
        drive(session, LONG * 6, each=Insistent(session, most=5))
        counts.append(len(session.inspect().log.applied))
        assert faults(session) == []
        assert any(event.kind == "thrashing" for event in told)
    assert counts[0] < counts[1]


def narrow() -> Session:
    """Return a session in a window where room must be made often."""
    config = GCConfig(auto_recall=False, recall_hold_collections=0)
    return Session(
        12_000, config=config, store="memory:", counter=QuarterCounter(), clock=Clock(),
        prices="anthropic-5m", recall_call=RECALL_CALL,
    )  # fmt: skip
