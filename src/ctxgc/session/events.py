"""Events: what happens in a session, reported to its listeners."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import RLock
from typing import Any, Literal

import msgspec

from ctxgc.errors import InputError

EventKind = Literal[
    "appended", "collected", "refused", "budget_updated", "zone_changed", "alert", "recalled",
    "deleted", "pinned", "unpinned", "checkpoint", "restored", "undone", "secret_found", "deduplicated",
    "thrashing",
]  # fmt: skip

_log = logging.getLogger("ctxgc")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: its number in the session, its kind, and data about it."""

    number: int
    kind: EventKind
    at: datetime
    data: dict[str, Any]


Callback = Callable[[Event], object]


class Events:
    """Numbers events and delivers them. A callback that raises is logged and dropped."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._callbacks: list[Callback] = []
        self._waiting: deque[Event] = deque()
        self._is_held = False
        # Reentrant: a thread that was interrupted during delivery can deliver again.
        self._delivering = RLock()
        self._is_delivering = False
        self.count = 0

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return a function that ends that."""
        if not callable(callback):
            raise InputError(
                f"callback cannot be {callback!r}", hint="give a function", field="callback"
            )
        self._callbacks.append(callback)
        return lambda: self._drop(callback)

    def emit(self, kind: EventKind, **data: Any) -> Event:
        """Report an event to all listeners, at once or as soon as events are not held any more."""
        self.count += 1
        event = Event(number=self.count, kind=kind, at=self._clock(), data=data)
        self._waiting.append(event)
        if not self._is_held:
            self.deliver()
        return event

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let events wait for `deliver`, because the change that they report is not complete yet."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def deliver(self) -> None:
        """Deliver the events that waited, in order; a delivery that is under way goes on with them."""
        while self._waiting and self._delivering.acquire(blocking=False):
            try:
                if self._is_delivering:
                    return
                self._deliver_all()
            finally:
                self._delivering.release()

    def _deliver_all(self) -> None:
        try:
            self._is_delivering = True
            while self._waiting:
                self._call_all(self._waiting.popleft())
        finally:
            self._is_delivering = False

    def _call_all(self, event: Event) -> None:
        ended: BaseException | None = None
        for callback in tuple(self._callbacks):
            try:
                callback(event)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("an event callback raised; it is dropped")
                self._drop(callback)
            except BaseException as error:  # noqa: BLE001 - the other listeners are called all the same
                ended = ended or error
        if ended is not None:
            raise ended

    def _drop(self, callback: Callback) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)
