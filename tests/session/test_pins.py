"""Pins, policies and search: what the user wants to keep is kept, and what left is found."""

from __future__ import annotations

import pytest

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.errors import InputError, UnknownHandleError
from tests.session.build import events_of, filled, requests_in
from tests.strategies.build import turn

COLLECTORS = ("gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep")


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_pin_survives_any_target(plugin: str) -> None:
    session = filled(10, tools=1, plugin=plugin, preserve_recent_turns=0, recent_messages=0)
    message = session.history[8]
    session.pin(message.message_id)
    session.collect(0)
    session.relieve(0)
    assert message in session.history


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_pinned_segment_keeps_its_message(plugin: str) -> None:
    session = filled(10, tools=1, plugin=plugin, preserve_recent_turns=0, recent_messages=0)
    message = session.history[10]
    (segment,) = [s for s in session.segments() if s.message_id == message.message_id]
    session.pin(segment.segment_id)
    session.collect(0)
    assert message in session.history


def test_an_unpinned_message_may_leave() -> None:
    session = filled(10, preserve_recent_turns=0)
    message = session.history[8]
    seen = events_of(session)
    session.pin(message.message_id)
    session.unpin(message.message_id)
    session.collect(0)
    assert message not in session.history
    assert [event.kind for event in seen[:2]] == ["pinned", "unpinned"]


def test_an_unknown_name_cannot_be_pinned() -> None:
    with pytest.raises(UnknownHandleError):
        filled(2).pin("nobody")


def test_a_policy_of_its_own_outlives_edits_recalls_and_recounts() -> None:
    session = filled(10, plugin="gc_budget", preserve_recent_turns=0)
    message_id = session.history[5].message_id
    session.set_policy(message_id, GCPolicy.PRESERVABLE)
    session.collect(0)
    assert message_id in {m.message_id for m in session.history}
    session.undo()
    child = session.budget.get_child(InstructionSource.CONVERSATION, message_id)
    assert child is not None
    assert child.gc_policy is GCPolicy.PRESERVABLE


def test_a_policy_that_there_is_not_is_refused() -> None:
    session = filled(2)
    with pytest.raises(InputError, match="is not a GCPolicy"):
        session.set_policy(session.history[0].message_id, "holy")  # type: ignore[arg-type]


def test_the_first_and_the_last_request_stay_always() -> None:
    session = filled(10, preserve_recent_turns=0)
    session.collect(0)
    assert requests_in(session) == [0, 9]
    session.extend(turn(10))
    session.collect(0)
    assert requests_in(session) == [0, 10]


def test_search_filters_are_checked() -> None:
    session = filled(3)
    with pytest.raises(InputError, match="filters"):
        session.search("request", filters={"created_after": "yesterday"})
    assert session.search("request", filters={"type": "code"}) == []


def test_an_unknown_id_is_told_where_ids_are_to_be_had() -> None:
    session = filled(2)
    calls = (session.pin, session.unpin, lambda name: session.set_policy(name, GCPolicy.LOCKED))
    for call in calls:
        with pytest.raises(UnknownHandleError, match="no segment with the handle 'nope'") as caught:
            call("nope")
        assert caught.value.hint == (
            "history[n].message_id is the id of a message, append() returns the ids of segments"
        )
    (segment_id,) = session.append({"role": "user", "content": "Keep this."})
    for name in (segment_id, session.history[-1].message_id):
        session.pin(name)
