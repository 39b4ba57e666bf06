"""Reading several collections of a session as they were at one moment, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ctxgc.errors import StoreBusyError
from ctxgc.stores.base import Store

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
