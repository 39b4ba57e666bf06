"""A session that was restarted knows what was sent, what it cost, and whether it thrashes."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ctxgc import Session
from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.stores import MemoryStore
from tests.collector.agent import HOW, LONG, Agent, drive, opened
from tests.fakes import Clock
from tests.session.build import Flaky, Insistent, filled, reckless
from tests.session.random_walk import faults


def known(session: Session) -> dict[str, Any]:
    """Return what the next decisions rest on, beside the view."""
    w = session.inspect().state
    return {
        "requests": w.requests,
        "sent": (w.sent_messages, w.sent_before, w.sent_at),
        "stuck_at": w.stuck_at,
        "thrash": (w.thrash, w.thrashing.to_doc()),
        "bills": (w.savings.savings, w.savings.unpruned_bill(100_000)),
    }


def test_of_two_objects_the_one_that_is_behind_is_refused() -> None:
    store = MemoryStore()
    first = filled(1, store=store, session_id="s")
    first.flush()
    second = Session(store=store, session_id="s")
    second.append({"role": "user", "content": "mine"})
    second.flush()
    with pytest.raises(StoreBusyError, match="another session object or process"):
        first.pin(first.history[0].message_id)
    second.append({"role": "assistant", "content": "going on"})
    second.flush()
    assert Session(store=store, session_id="s").view() == second.view()


@pytest.mark.parametrize("length", range(1, len(LONG), 3))
def test_after_a_crash_it_knows_what_the_last_request_knew(length: int) -> None:
    store, clock = MemoryStore(), Clock()
    session = reckless(store=store, session_id="s", clock=clock)
    drive(session, LONG[:length], each=Insistent(session))
    session.messages()
    again = reckless(store=store, session_id="s", clock=clock)
    assert known(again) == known(session)
    assert faults(again) == []


def test_it_keeps_the_peace_that_an_insistent_agent_was_given() -> None:
    store, agent = MemoryStore(), Agent()
    session = reckless(store=store, session_id="s")
    while not session.inspect().state.thrashing.is_paused(session.inspect().state.requests):
        drive(session, LONG, agent, each=Insistent(session))
    collections = len(session.inspect().log.applied)
    session.flush()
    again = reckless(store=store, session_id="s")
    drive(again, LONG[:3], agent)
    assert len(again.inspect().log.applied) == collections


def test_it_knows_when_the_provider_has_forgotten_the_last_request() -> None:
    store, clock = MemoryStore(), Clock()
    session = opened(store=store, session_id="s", clock=clock)
    drive(session, LONG[:3])
    again = opened(store=store, session_id="s", clock=clock)
    assert not again.inspect().requests.is_cold()
    clock.now += timedelta(minutes=6)
    assert again.inspect().requests.is_cold()


def test_a_request_that_could_not_be_saved_was_not_sent() -> None:
    session = filled(3, plugin="gc_none", store=(store := Flaky()))
    session.messages()
    session.append({"role": "user", "content": "and now?"})
    before = known(session)
    store.fail_next()
    with pytest.raises(StoreError):
        session.messages()
    assert known(session) == before
    session.messages()
    assert session.inspect().state.requests == before["requests"] + 1


def test_a_restart_changes_nothing_that_was_sent() -> None:
    store, clock, agent = MemoryStore(), Clock(), Agent()
    views: list[list[Any]] = []
    for step in LONG:
        session = opened(store=store, session_id="s", clock=clock)
        if not session.history:
            session.extend(agent.begin())
        views.append(session.messages())
        session.extend([message for side in agent.step(step) for message in side])
        session.flush()
    stayed = [new[: len(old)] == old for old, new in pairwise(views)]
    assert stayed.count(False) == len(session.gc_history) > 0


def ages(session: Session) -> dict[str, Any]:
    """Return what the default strategy knows of the age of results and of the files they show."""
    assert session.plugin.price_collector is not None
    reader = session.plugin.price_collector._reader
    clues = reader.clues
    return {
        "born": {item.source: item.born for item in reader.open},
        "files": (clues._named, clues._edited),
        "work": (clues._checked, clues._steered),
    }


@pytest.mark.parametrize("length", range(4, len(LONG), 4))
def test_it_knows_how_old_each_result_is(length: int) -> None:
    store, clock, agent = MemoryStore(), Clock(), Agent()
    patient = msgspec.to_builtins(replace(HOW, horizon=0, copy_lines=1_000))
    how = {
        "store": store,
        "session_id": "s",
        "clock": clock,
        "plugin_config": {"constants": patient},
    }
    session = opened(**how)
    drive(session, LONG[:length], agent)
    session.messages()
    again = opened(**how)
    again.messages()
    assert ages(again) == ages(session)
