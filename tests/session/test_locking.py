"""One caller of a session at a time, each call whole, whoever calls from where."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ctxgc.errors import SessionBusyError
from ctxgc.session import Event, Session
from ctxgc.session.calls import SessionLock
from ctxgc.stores import MemoryStore
from ctxgc.strategies.truncate import TruncateStrategy
from tests.session.build import QUESTION, Interfering, events_of, filled, make, requests_in
from tests.session.random_walk import faults


def _stored(store: MemoryStore) -> list[str]:
    return [key for key, _ in store.load("a", "collections")]


def test_who_hears_of_an_event_may_call_the_session_again() -> None:
    store = MemoryStore()
    session = filled(12, limit=1_300, auto_trigger=False, store=store, session_id="a")

    def collect_more(event: Event) -> None:
        if event.kind == "zone_changed":
            session.collect(400)

    session.events(collect_more)
    seen = events_of(session)
    session.collect(800)
    assert [event.number for event in seen] == sorted(event.number for event in seen)
    assert len(session.gc_history) == len(_stored(store)) > 1
    again = make(1_300, store=store, session_id="a")
    assert again.view() == session.view()
    assert faults(session) == []


def test_an_event_is_told_when_all_of_the_call_is_done() -> None:
    session = filled(12)
    seen: list[tuple[str, int, int]] = []
    session.events(lambda e: seen.append((e.kind, len(session.gc_history), len(session.history))))
    session.collect(800)
    assert {(done, left) for _, done, left in seen} == {(1, len(session.history))}


def test_a_strategy_may_ask_its_session_but_not_change_it() -> None:
    asked: list[Any] = []
    refused: list[SessionBusyError] = []

    def act() -> None:
        asked.append((session.usage().total_tokens, len(session.view()), session.search("thing")))
        for change in (lambda: session.append(QUESTION), session.flush, session.collect):
            with pytest.raises(SessionBusyError) as error:
                change()
            refused.append(error.value)

    session: Session = filled(12, plugin=Interfering(act))
    before = session.usage().total_tokens, len(session.view())
    assert session.collect(800).success
    assert [(tokens, shown) for tokens, shown, _ in asked] == [before]
    assert [error.details for error in refused] == [
        {"method": "append"},
        {"method": "flush"},
        {"method": "collect"},
    ]
    session.append(QUESTION)
    assert session.view()[-1] == QUESTION


def test_a_summarizer_that_changes_its_session_is_a_failed_summarizer() -> None:
    def summarize(_: str) -> str:
        session.append(QUESTION)
        return "short"

    session = filled(12, plugin="gc_summarize", plugin_config={"summarizer": summarize})
    result = session.collect(800)
    (why,) = result.details["summarizer_failures"]
    assert why.startswith("raised: SessionBusyError: `append` was called in the middle")
    assert faults(session) == []
    assert QUESTION not in session.view()


def test_a_thread_waits_until_the_call_of_another_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    taken = SessionLock.taken

    def watched(lock: SessionLock, name: str) -> Any:
        asked.set()
        return taken(lock, name)

    def act() -> None:
        asked.clear()
        other.start()
        assert asked.wait(10)

    session = filled(12, plugin=Interfering(act))
    monkeypatch.setattr(SessionLock, "taken", watched)
    other = threading.Thread(target=session.append, args=[QUESTION])
    result = session.collect(800)
    other.join(10)
    assert result.success
    assert len(requests_in(session)) < 12
    assert session.view()[-1] == QUESTION
    assert faults(session) == []


def test_every_public_method_takes_a_turn() -> None:
    public = {name: getattr(Session, name) for name in dir(Session) if not name.startswith("_")}
    methods = {name: each for name, each in public.items() if callable(each)}
    assert {"append", "messages", "recall", "undo"} <= methods.keys()
    assert [name for name, each in methods.items() if not hasattr(each, "__wrapped__")] == []


def test_messages_that_are_made_while_somebody_asks_come_in() -> None:
    session = filled(2)

    def made() -> Any:
        asked = threading.Thread(target=session.usage)
        asked.start()
        asked.join()
        yield QUESTION

    session.extend(made())
    assert session.view()[-1] == QUESTION


def test_a_store_is_closed_also_when_the_strategy_cannot_shut_down() -> None:
    class Stubborn(TruncateStrategy):
        def shutdown(self) -> None:
            raise RuntimeError("not now")

    closed: list[bool] = []

    class Closing(MemoryStore):
        def close(self) -> None:
            closed.append(True)

    session = filled(2, plugin=Stubborn(), store=Closing())
    with pytest.raises(RuntimeError, match="not now"):
        session.close()
    assert closed == [True]
