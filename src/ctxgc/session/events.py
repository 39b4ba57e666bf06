"""Events: what happens in a session, told to whoever asked."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
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
        """Tell everybody."""
        self.count += 1
        event = Event(number=self.count, kind=kind, at=self._clock(), data=data)
        for callback in tuple(self._callbacks):
            try:
                callback(event)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("an event callback raised; it is dropped")
                self._drop(callback)
        return event

    def _drop(self, callback: Callback) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)
