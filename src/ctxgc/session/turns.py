"""Turns: one caller of a session at a time, and each call whole.

Threads wait for each other. Events are told when a call has done its work, so that who hears of them may
call the session again. Who is called in the middle of the work, a strategy or a summarizer, may ask but not
change anything: what it changed would be overwritten. Ctrl-C waits for the end, except while they work.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any, TypeVar

from ctxgc.errors import SessionBusyError
from ctxgc.session.events import Events
from ctxgc.session.interrupts import uninterrupted

ASKS = frozenset(
    {"arrivals", "checkpoints", "events", "read", "recalled", "search", "segments", "usage", "view"}
)
"""What changes nothing, and may be called in the middle of the work."""

T = TypeVar("T")


class Turns:
    """The turns of one session."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = RLock()
        self.is_broken = False
        """Whether a second Ctrl-C left a change half done here; the store has all or nothing of it."""

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Take a turn for a call.

        Raises:
            SessionBusyError: the session itself is waiting for the caller, or it was broken by a second
                Ctrl-C; nothing was changed.
        """
        if any(work.turns is self and not work.is_done for work in _works.get()):
            _check_asks(name)
            yield
            return
        try:
            with self._lock, self._whole(name), self._work():
                yield
        finally:
            self._events.tell()

    @contextmanager
    def _whole(self, name: str) -> Iterator[None]:
        """Let Ctrl-C wait for the end of a call; a change that a second one cut breaks the session."""
        changes = name not in ASKS
        if self.is_broken and changes and name != "close":
            raise SessionBusyError(
                "a second Ctrl-C came in the middle of a change of this session",
                hint="open it again by its id: its store has all or nothing of the change",
                method=name,
            )
        with uninterrupted() as delay:
            try:
                yield
            finally:
                forced = changes and delay is not None and delay.is_forced
                self.is_broken = self.is_broken or forced

    @contextmanager
    def _work(self) -> Iterator[None]:
        work, before = _Work(self), _works.get()
        try:
            _works.set((*before, work))
            with self._events.held():
                yield
        finally:
            work.is_done = True
            _works.set(before)


class _Work:
    """What a call is doing until it is done."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.is_done = False


# The thread of a summarizer inherits it, and so is known as a part of the work that waits for it.
_works: ContextVar[tuple[_Work, ...]] = ContextVar("ctxgc_works", default=())


def _check_asks(name: str) -> None:
    if name not in ASKS:
        raise SessionBusyError(
            f"`{name}` was called in the middle of another call of the same session",
            hint="strategies, summarizers and counters may ask a session, not change it",
            method=name,
        )


def one_at_a_time(kind: type[T]) -> type[T]:
    """Let every public method of a class take a turn; its objects have `_turns`."""
    for name in dir(kind):
        function = inspect.getattr_static(kind, name)
        if not name.startswith("_") and inspect.isfunction(function):
            setattr(kind, name, _in_turn(function))
    return kind


def _in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(self: Any, *given: Any, **more: Any) -> Any:
        # What makes the messages may wait for somebody who waits for the session.
        given = tuple(list(each) if isinstance(each, Iterator) else each for each in given)
        with self._turns.taken(function.__name__):
            return function(self, *given, **more)

    return called
