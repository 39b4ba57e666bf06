"""The store that forgets: for tests, one-shot collections and agents that need no second life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ctxgc.stores.base import StoreReport, Write
from ctxgc.stores.documents import prepare
from ctxgc.stores.table_store import TableStore
from ctxgc.stores.tables import Tables, now


class MemoryStore(TableStore):
    """Keeps sessions for as long as this object lives."""

    url = "memory:"
    reports: tuple[StoreReport, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._tables = Tables()

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision."""
        prepared = prepare(session_id, writes)
        with self._lock:
            found = self._tables.check(session_id, expect)
            return self._tables.apply(session_id, prepared, now()) if prepared else found

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        with self._lock:
            self._tables.sessions.pop(session_id, None)

    def close(self) -> None:
        """Do nothing: there are no files."""

    @contextmanager
    def _current(self) -> Iterator[Tables]:
        with self._lock:
            yield self._tables
