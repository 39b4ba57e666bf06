"""Reading several collections of a session as they were at one moment, whoever writes meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock, RLock
from typing import Protocol, TypeVar
from weakref import WeakSet

from ctxgc.errors import StoreBusyError
from ctxgc.stores.base import Store

# -- Forks: what a store must hold still, and let go of, so that parent and child can both go on


class Forkable(Protocol):
    """Something that is told of forks of its process."""

    def before_fork(self) -> None:
        """Hold still until `after_fork`."""
        ...

    def after_fork(self, *, in_child: bool) -> None:
        """Go on."""
        ...


class _Forks:
    """Everybody who has to be told; one fork at a time."""

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


def tell_of_forks(forkable: Forkable) -> None:
    """Tell an object of every fork of this process for as long as it lives."""
    if not hasattr(os, "register_at_fork"):  # a system that cannot fork
        return
    if not _forks:
        _forks.append(_Forks())
    _forks[0].add(forkable)


class OneThreadAtATime:
    """Has a lock for its threads, which no fork leaves locked."""

    def __init__(self) -> None:
        self._lock = RLock()
        tell_of_forks(self)

    def before_fork(self) -> None:
        """Wait until no other thread is at work, and keep them waiting."""
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:  # noqa: ARG002 (both sides have locked it)
        """Let the threads go on."""
        self._lock.release()


# -- Reading several collections of a session as they were at one moment, whoever writes meanwhile


TRIES = 20
"""How often a session is read again because it was written to meanwhile."""

T = TypeVar("T")


def in_one_moment(store: Store, session_id: str, read: Callable[[], T]) -> T:
    """Return what `read` finds out about a session while nobody writes to it.

    Raises:
        StoreBusyError: others wrote to it whenever it was read.
    """
    for _ in range(TRIES):
        before = store.revision(session_id)
        try:
            found = read()
        except Exception:  # what does not fit together can raise anything
            if store.revision(session_id) == before:
                raise
        else:
            if store.revision(session_id) == before:
                return found
    raise StoreBusyError(
        f"session {session_id!r} was written to whenever it was read",
        hint="call again, or end what works on it",
        session_id=session_id,
    )
