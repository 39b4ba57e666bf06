"""Turns: one caller of a session at a time, and each call whole.

Threads wait for each other. Events are told when a call has done its work, so that who hears of them may
call the session again. Who is called in the middle of the work, a strategy or a summarizer, may ask but not
change anything: what it changed would be overwritten. Ctrl-C waits for the end, except while they work.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from types import FrameType
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ctxgc.errors import CtxgcError, SessionBusyError
from ctxgc.session.events import Events

# -- Interrupts: Ctrl-C in the middle of a change would leave half of it, so it waits for the end


Handler = Callable[[int, FrameType | None], object]


class Delay:
    """Notes the first Ctrl-C and hands it on at the end; a second one does not wait."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._noted = 0
        self._frame: FrameType | None = None
        self.is_forced = False
        """Whether a second Ctrl-C came, and was raised in the middle."""

    def begin(self) -> None:
        """Let Ctrl-C wait."""
        signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Let it wait no more, and hand on what has waited."""
        signal.signal(signal.SIGINT, self._handler)
        noted, self._noted = self._noted, 0
        frame, self._frame = self._frame, None
        if noted and not self.is_forced:
            self._handler(signal.SIGINT, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self not in _delays:  # its end was interrupted
            signal.signal(signal.SIGINT, self._handler)
            self._handler(number, frame)
            return
        self._noted += 1
        if self._noted == 1:
            self._frame = frame
            return
        try:
            self._handler(number, frame)
        except BaseException:
            self.is_forced = True
            raise


_delays: list[Delay] = []


@contextmanager
def uninterrupted() -> Iterator[Delay | None]:
    """Let Ctrl-C wait until this is done; only the main thread ever gets it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield None
        return
    delay = Delay(handler)
    try:
        _delays.append(delay)
        delay.begin()
        yield delay
    finally:
        try:
            _delays[:] = [each for each in _delays if each is not delay]
        finally:
            delay.end()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through for a while, inside `uninterrupted`: nothing has changed yet."""
    if threading.current_thread() is not threading.main_thread() or not _delays:
        yield
        return
    delay = _delays[-1]
    delay.end()
    try:
        yield
    finally:
        delay.begin()


# -- Leaving: what came in last is stored also where a program ends without closing its sessions


_log = logging.getLogger(__name__)


class Flushable(Protocol):
    """A session, as far as its end is concerned."""

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in that its store does not hold yet."""
        ...

    def flush(self) -> None:
        """Make everything durable that is not yet."""
        ...


# A child of a fork leaves the sessions of its parent alone: they are the parent's to write.
_open: WeakKeyDictionary[Flushable, int] = WeakKeyDictionary()


def flush_at_exit(session: Flushable) -> None:
    """Flush a session when this process ends, if it is open then."""
    _open[session] = os.getpid()


def stop_flushing(session: Flushable) -> None:
    """Leave a session alone from now on: it was closed."""
    _open.pop(session, None)


@atexit.register
def _flush_all() -> None:
    for session, process in list(_open.items()):
        if process != os.getpid() or not session.is_unsaved:
            continue
        try:
            session.flush()
        except CtxgcError as error:
            _log.warning("a session could not be stored at the end of the program: %s", error)


# -- Turns: one caller of a session at a time, and each call whole


ASKS = frozenset(
    {"arrivals", "checkpoints", "events", "read", "recalled", "search", "segments", "usage", "view"}
)
"""What changes nothing, and may be called in the middle of the work."""

T = TypeVar("T")


class SessionLock:
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

    def __init__(self, turns: SessionLock) -> None:
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
