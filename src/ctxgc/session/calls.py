"""Calls of a session: one at a time, each whole, with its events delivered at the end.

Threads wait for each other. Events are delivered when a call has done its work, so that listeners may call
the session again. What a call itself calls, a strategy or a summarizer, may read the session but not change
it: its change would be overwritten. Ctrl-C waits for the end of a call, except while a strategy works. What
came in last is stored even if the program ends without closing its sessions.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import logging
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from threading import RLock
from types import FrameType
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from ctxgc.errors import CtxgcError, InputError, SessionBusyError

# -- Events: what happens in a session, reported to its listeners


EventKind = Literal[
    "appended", "collected", "refused", "budget_updated", "zone_changed", "alert", "recalled",
    "deleted", "pinned", "unpinned", "checkpoint", "restored", "undone", "secret_found", "deduplicated",
    "thrashing", "annotated", "damaged",
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
        self._first: list[tuple[EventKind, dict[str, Any]]] = []

    def at_first(self, kind: EventKind, **data: Any) -> None:
        """Report an event as soon as someone listens."""
        self._first.append((kind, data))

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return a function that ends that."""
        if not callable(callback):
            raise InputError(
                f"callback cannot be {callback!r}", hint="give a function", field="callback"
            )
        self._callbacks.append(callback)
        first, self._first = self._first, []
        for kind, data in first:
            self.emit(kind, **data)
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


# -- Ctrl-C, which would leave half a change: it waits for the end


Handler = Callable[[int, FrameType | None], object]


class Delay:
    """Holds the first Ctrl-C back until the end; a second one is not held back."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._noted = 0
        self._frame: FrameType | None = None
        self.is_forced = False
        """Whether a second Ctrl-C came, and was raised in the middle."""

    def begin(self) -> None:
        """Hold Ctrl-C back from now on."""
        signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Stop holding Ctrl-C back, and deliver what was held."""
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
    """Hold Ctrl-C back inside the block; only the main thread ever gets it."""
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
    """Let Ctrl-C through inside the block, within `uninterrupted`: nothing has changed yet."""
    if threading.current_thread() is not threading.main_thread() or not _delays:
        yield
        return
    delay = _delays[-1]
    delay.end()
    try:
        yield
    finally:
        delay.begin()


# -- Flushing at exit


class Flushable(Protocol):
    """What can be flushed when the process ends: a session."""

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in that its store does not hold yet."""
        ...

    def flush(self) -> None:
        """Make everything durable that is not yet."""
        ...


# A forked child does not flush the sessions of its parent.
_open: WeakKeyDictionary[Flushable, int] = WeakKeyDictionary()


def flush_at_exit(session: Flushable) -> None:
    """Flush a session when this process ends, if it is open then."""
    _open[session] = os.getpid()


def stop_flushing(session: Flushable) -> None:
    """Do not flush a session any more: it was closed."""
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


# -- The lock


READ_ONLY = frozenset(
    {
        "arrivals",
        "checkpoints",
        "events",
        "inspect",
        "read",
        "recalled",
        "search",
        "segments",
        "usage",
        "view",
    }
)
"""The methods that change nothing, and so may be called in the middle of another call."""

T = TypeVar("T")


class SessionLock:
    """The lock of one session."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = RLock()
        self.is_broken = False
        """Whether a second Ctrl-C left a change half done; the store has all or nothing of it."""

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Hold the lock for a call.

        Raises:
            SessionBusyError: the session itself is waiting for the caller, or it was broken by a second
                Ctrl-C; nothing was changed.
        """
        if any(work.lock is self and not work.is_done for work in _works.get()):
            _check_read_only(name)
            yield
            return
        try:
            with self._lock, self._whole(name), self._work():
                yield
        finally:
            self._events.deliver()

    @contextmanager
    def _whole(self, name: str) -> Iterator[None]:
        """Hold Ctrl-C back until the end of a call; if a second one cuts a change, the session is broken."""
        changes = name not in READ_ONLY
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
    """A call that holds the lock, until it is done."""

    def __init__(self, lock: SessionLock) -> None:
        self.lock = lock
        self.is_done = False


# A summarizer's thread inherits it, and so counts as part of the call that waits for it.
_works: ContextVar[tuple[_Work, ...]] = ContextVar("ctxgc_works", default=())


def _check_read_only(name: str) -> None:
    if name not in READ_ONLY:
        raise SessionBusyError(
            f"`{name}` was called in the middle of another call of the same session",
            hint="strategies, summarizers and counters may read a session, not change it",
            method=name,
        )


def one_at_a_time(kind: type[T]) -> type[T]:
    """Let every public method of a class hold the lock of its object, which is its `_call_lock`."""
    for name in dir(kind):
        function = inspect.getattr_static(kind, name)
        if not name.startswith("_") and inspect.isfunction(function):
            setattr(kind, name, _locked(function))
    return kind


def _locked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(self: Any, *given: Any, **more: Any) -> Any:
        # A generator of messages may wait for a thread that waits for the session.
        given = tuple(list(each) if isinstance(each, Iterator) else each for each in given)
        with self._call_lock.taken(function.__name__):
            return function(self, *given, **more)

    return called
