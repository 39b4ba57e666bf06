"""Concurrency: locks that survive a fork, reads at one revision, and the error of a late commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, RLock
from typing import Protocol, TypeVar
from weakref import WeakSet

from ctxgc.errors import StoreBusyError
from ctxgc.stores.base import Store

TRIES = 20
"""How often a session is read again because someone wrote to it meanwhile."""

T = TypeVar("T")


class Forkable(Protocol):
    """Something that is notified before and after its process forks."""

    def before_fork(self) -> None:
        """Change nothing until `after_fork`."""
        ...

    def after_fork(self, *, in_child: bool) -> None:
        """Continue."""
        ...


class _Forks:
    """The objects to notify; one fork at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakSet[Forkable] = WeakSet()
        self._still: list[Forkable] = []
        os.register_at_fork(
            before=self._before,
            after_in_parent=lambda: self._after(in_child=False),
            after_in_child=lambda: self._after(in_child=True),
        )

    def add(self, forkable: Forkable) -> None:
        with self._lock:
            self._known.add(forkable)

    def _before(self) -> None:
        self._lock.acquire()
        for forkable in list(self._known):
            forkable.before_fork()
            self._still.append(forkable)

    def _after(self, *, in_child: bool) -> None:
        still, self._still = self._still, []
        for forkable in still:
            forkable.after_fork(in_child=in_child)
        self._lock.release()


_forks: list[_Forks] = []


def register_for_forks(forkable: Forkable) -> None:
    """Notify an object of every fork of this process for as long as it lives."""
    if not hasattr(os, "register_at_fork"):  # a system that cannot fork
        return
    if not _forks:
        _forks.append(_Forks())
    _forks[0].add(forkable)


class ForkSafe:
    """Base with a lock for the threads of one process that a fork never leaves locked."""

    def __init__(self) -> None:
        self._lock = RLock()
        register_for_forks(self)

    def before_fork(self) -> None:
        """Wait until no other thread holds the lock, and hold it."""
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:  # noqa: ARG002 (both sides hold it)
        """Release the lock."""
        self._lock.release()


def consistent_read(store: Store, session_id: str, read: Callable[[], T]) -> T:
    """Return what `read` returns, repeated until no one writes to the session meanwhile.

    Raises:
        StoreBusyError: someone wrote to it at every attempt.
    """
    for _ in range(TRIES):
        before = store.revision(session_id)
        try:
            found = read()
        except Exception:  # inconsistent documents can raise anything
            if store.revision(session_id) == before:
                raise
        else:
            if store.revision(session_id) == before:
                return found
    raise StoreBusyError(
        f"session {session_id!r} was written to every time it was read",
        hint="call again, or end what writes to it",
        session_id=session_id,
    )
