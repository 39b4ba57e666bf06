"""Forks: what a store must hold still, and let go of, so that parent and child can both go on.

A child of `os.fork` has a copy of every open connection, but none of the locks that made it safe: SQLite then
throws commits away, and Postgres hears two processes on one line. A lock that another thread held at that
moment is never given back in the child.
"""

from __future__ import annotations

import os
from threading import Lock, RLock
from typing import Protocol
from weakref import WeakSet


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
