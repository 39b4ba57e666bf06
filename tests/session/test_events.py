"""Events: everything that happens, in order, and no listener can do harm."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.session.build import events_of, filled, make
from tests.strategies.build import turn


def test_events_are_numbered_and_end_when_told_to() -> None:
    session = make()
    seen: list[Any] = []
    end = session.events(seen.append)
    session.extend(turn(0))
    session.pin(session.history[0].message_id)
    session.unpin(session.history[0].message_id)
    end()
    session.pin(session.history[0].message_id)
    numbers = [event.number for event in seen]
    assert numbers == sorted(set(numbers))
    assert [event.kind for event in seen][-2:] == ["pinned", "unpinned"]


def test_a_listener_that_raises_is_logged_and_never_called_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[Any] = []

    def bad(event: Any) -> None:
        calls.append(event)
        raise RuntimeError("listener")

    session = filled(2)
    session.events(bad)
    good = events_of(session)
    with caplog.at_level(logging.ERROR, logger="ctxgc"):
        session.pin(session.history[0].message_id)
        session.unpin(session.history[0].message_id)
    assert len(calls) == 1
    assert len(good) == 2
    assert "dropped" in caplog.text


def test_a_zone_is_told_once_when_it_is_entered() -> None:
    session = make(1_000, auto_trigger=False)
    seen = events_of(session)
    for number in range(9):
        session.extend(turn(number))
    zones = [event.data["now"] for event in seen if event.kind == "zone_changed"]
    assert zones == ["warning", "danger", "critical"][: len(zones)]
    assert len(zones) >= 2


def test_when_a_listener_ends_the_program_the_others_hear_of_it_all_the_same() -> None:
    session = make()
    session.extend(turn(0))
    name = session.history[0].message_id

    def leave(_: Any) -> None:
        raise SystemExit(3)

    end = session.events(leave)
    seen = events_of(session)
    with pytest.raises(SystemExit):
        session.pin(name)
    end()
    session.unpin(name)
    assert [event.kind for event in seen] == ["pinned", "unpinned"]
