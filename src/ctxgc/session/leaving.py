"""Leaving: what came in last is stored also where a program ends without closing its sessions."""

from __future__ import annotations

import atexit
import logging
import os
from typing import Protocol
from weakref import WeakKeyDictionary

from ctxgc.errors import CtxgcError

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
