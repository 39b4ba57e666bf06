"""Ctrl-C in the middle of a call: the session is what it was before, or what it is afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from ctxgc.errors import SessionBusyError
from ctxgc.session.calls import interruptible, uninterrupted
from ctxgc.stores import MemoryStore
from tests.session.build import QUESTION, Interfering, filled, make, state_of
from tests.session.random_walk import faults


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt: a background job inherits a shell's SIG_IGN."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting(MemoryStore):
    """Gets Ctrl-C, so many times, when a commit is durable."""

    times = 0

    def commit(self, *given: Any, **more: Any) -> int:
        """Write a batch."""
        revision = super().commit(*given, **more)
        while self.times:
            self.times -= 1
            signal.raise_signal(signal.SIGINT)
        return revision


def test_ctrl_c_in_a_collection_is_raised_when_it_is_whole() -> None:
    store = Interrupting()
    session = filled(12, store=store, session_id="a")
    store.times = 1
    with pytest.raises(KeyboardInterrupt):
        session.collect(800)
    assert len(session.gc_history) == 1
    assert faults(session) == []
    session.append(QUESTION)
    session.flush()
    assert make(store=store, session_id="a").view() == session.view()


def test_ctrl_c_while_a_strategy_thinks_changes_nothing() -> None:
    session = filled(12, plugin=Interfering(lambda: signal.raise_signal(signal.SIGINT)))
    before = state_of(session)
    with pytest.raises(KeyboardInterrupt):
        session.collect(800)
    assert state_of(session) == before
    session.append(QUESTION)
    assert session.view()[-1] == QUESTION


def test_a_session_that_a_second_ctrl_c_broke_writes_no_more_and_can_be_opened_again() -> None:
    store = Interrupting()
    session = filled(12, store=store, session_id="a")
    store.times = 2
    with pytest.raises(KeyboardInterrupt), session:
        session.collect(800)
    assert session.usage().total_tokens > 0
    with pytest.raises(SessionBusyError, match="a second Ctrl-C") as error:
        session.append(QUESTION)
    assert "open it again" in error.value.hint
    again = make(store=store, session_id="a")
    assert len(again.gc_history) == 1
    assert faults(again) == []
    again.append(QUESTION)
    again.flush()


def test_only_the_first_ctrl_c_waits() -> None:
    done = []

    @uninterrupted()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("after the first")
        signal.raise_signal(signal.SIGINT)
        done.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["after the first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_waited_is_raised_where_an_interrupt_does_no_harm() -> None:
    done = []

    @uninterrupted()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("waited")
        with interruptible():
            done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["waited"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_ctrl_c_that_the_program_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store = Interrupting()
    session = filled(12, store=store, session_id="a")
    store.times = 2
    session.collect(800)
    assert store.times == 0
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    session.append(QUESTION)
    session.close()
    assert make(store=store, session_id="a").view()[-1] == QUESTION


def test_a_handler_that_raises_nothing_breaks_nothing_and_hears_of_every_ctrl_c() -> None:
    heard: list[object] = []
    signal.signal(signal.SIGINT, lambda _, frame: heard.append(frame))
    store = Interrupting()
    session = filled(12, store=store, session_id="a")
    for times in (1, 2, 3):
        store.times = times
        session.append(QUESTION)
        session.flush()
        assert len(heard) == times
        assert None not in heard
        heard.clear()
    session.close()
    assert make(store=store, session_id="a").view()[-3:] == [QUESTION] * 3


def test_a_handler_left_behind_by_an_interrupted_end_gives_way_to_the_hosts() -> None:
    before = signal.getsignal(signal.SIGINT)
    with uninterrupted():
        left = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, left)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
