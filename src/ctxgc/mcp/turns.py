"""Turns: one caller at a time, and each change whole: durable when its answer is given, or undone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ctxgc.errors import StoreBusyError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context
from ctxgc.mcp.keeper import Keeper

Json = dict[str, Any]
T = TypeVar("T")

TRIES = 20
"""How often a change is repeated because another server changed the context first."""


class Turns:
    """Lets work be done on the context of a keeper. Safe to call from several threads."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._lock = threading.Lock()

    def ask(self, work: Callable[[Context], T]) -> T:
        """Return what work that changes nothing finds out."""
        with self._lock:
            return work(self._current())

    def rehearse(self, work: Callable[[Context], T]) -> T:
        """Return what a change would answer; it is not made."""
        with self._lock:
            try:
                return work(self._current())
            finally:
                self._keeper.forget()

    def change(self, work: Callable[[Context], Json]) -> Json:
        """Make a change durable and return its answer; repeat it where another server was faster.

        Raises:
            StoreError: it could not be made durable; nothing changed.
        """
        with self._lock:
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except StoreBusyError as error:
                    if "found" not in error.details:
                        raise
            return self._once(work)

    def _once(self, work: Callable[[Context], Json]) -> Json:
        context = self._current()
        before = _stamp(context)
        try:
            answer = _watched(context, work(context))
            self._keeper.save(context)
        except BaseException as error:
            # What is in memory must never differ from what is stored.
            if isinstance(error, StoreBusyError) or _stamp(context) != before or context.writes:
                self._keeper.forget()
            raise
        return answer

    def _current(self) -> Context:
        for _ in range(TRIES):
            try:
                return self._keeper.current()
            except StoreBusyError:
                self._keeper.forget()
        return self._keeper.current()


def _watched(context: Context, answer: Json) -> Json:
    """Note the zone; the answer that follows an arrival in a fuller one carries the alert."""
    zone, alert = usage.watch(context)
    context.saved.zone = zone.value
    return answer if alert is None else {**answer, "alert": alert}


def _stamp(context: Context) -> tuple[int, Any]:
    return context.heap.version, msgspec.to_builtins(context.saved)
