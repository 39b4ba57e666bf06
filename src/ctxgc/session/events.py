"""Events: what happens in a session, told to whoever asked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
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
    """Numbers events and hands them on. A callback that raises is logged and never heard of again."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._callbacks: list[Callback] = []
        self._waiting: deque[Event] = deque()
        self._is_held = False
        self._telling = Lock()
        self.count = 0

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return what ends that."""
        if not callable(callback):
            raise InputError(
                f"callback cannot be {callback!r}", hint="give a function", field="callback"
            )
        self._callbacks.append(callback)
        return lambda: self._drop(callback)

    def emit(self, kind: EventKind, **data: Any) -> Event:
        """Tell everybody, at once or when they are not held any more."""
        self.count += 1
        event = Event(number=self.count, kind=kind, at=self._clock(), data=data)
        self._waiting.append(event)
        if not self._is_held:
            self.tell()
        return event

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let events wait for `tell`, because what they are about is not whole yet."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def tell(self) -> None:
        """Tell everybody what has waited, in order; who is telling already goes on with it."""
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                while self._waiting:
                    self._hand_on(self._waiting.popleft())
            finally:
                self._telling.release()

    def _hand_on(self, event: Event) -> None:
        for callback in tuple(self._callbacks):
            try:
                callback(event)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("an event callback raised; it is dropped")
                self._drop(callback)

    def _drop(self, callback: Callback) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)
