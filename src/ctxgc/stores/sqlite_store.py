"""The sqlite store: many segments, several processes on one machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ctxgc.stores.base import (
    CollectionName,
    SearchFilters,
    SessionInfo,
    StoreHit,
    StoreReport,
    Write,
    check_collection,
    check_name,
    check_revision,
    prepare,
)
from ctxgc.stores.concurrency import ForkSafe
from ctxgc.stores.search import parse_query, rank
from ctxgc.stores.sqlite_documents import (
    SqliteSource,
    forget_segment,
    get,
    info,
    revision,
    row_of,
    sid_of,
    write,
)
from ctxgc.stores.sqlite_file import SqliteFile, sqlite_errors, transaction

BUSY_TIMEOUT = 30.0


class SqliteStore(ForkSafe):
    """Keeps sessions in a SQLite database in WAL mode; every commit is synced.

    Raises:
        StoreVersionError: a newer ctxgc wrote the file.
        StoreDamagedError: the file belongs to another program, or is damaged and in use.
        StoreError: the file cannot be opened.
    """

    def __init__(self, path: str | Path, *, timeout: float = BUSY_TIMEOUT) -> None:
        self.url = f"sqlite:{path}"
        self._file = SqliteFile(Path(path).absolute(), timeout)
        super().__init__()
        with self._lock, sqlite_errors(self._file.path):
            self._file.open()

    @property
    def reports(self) -> tuple[StoreReport, ...]:
        """What this handle had to repair, oldest first."""
        return tuple(self._file.reports)

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision."""
        prepared = prepare(session_id, writes)
        if not prepared and expect is None:
            return self.revision(session_id)
        with self._transaction("IMMEDIATE") as db:
            found = revision(db, session_id)
            check_revision(session_id, expect, found)
            return write(db, session_id, prepared) if prepared else found

    def revision(self, session_id: str) -> int:
        """Return how many commits a session has had; 0 if it is not known."""
        with self._transaction() as db:
            return revision(db, session_id)

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection with their keys, in the order of first insertion."""
        check_collection(collection)
        with self._transaction() as db:
            rows = db.execute(
                """SELECT key, doc FROM documents WHERE sid = ? AND collection = ? ORDER BY seq""",
                (sid_of(db, session_id), collection),
            )
            return [row_of(collection, key, doc) for key, doc in rows]

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        check_collection(collection)
        with self._transaction() as db:
            return get(db, session_id, collection, key)

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions in the order of their ids."""
        with self._transaction() as db:
            counts = {
                (sid, collection): count
                for sid, collection, count in db.execute(
                    "SELECT sid, collection, count(*) FROM documents GROUP BY sid, collection"
                )
            }
            rows = db.execute(
                "SELECT sid, session_id, revision, created_at, updated_at FROM sessions"
            )
            infos = [info(row, counts) for row in rows]
        return sorted(infos, key=lambda info: info.session_id)

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        filters: SearchFilters | None = None,
        limit: int = 10,
    ) -> list[StoreHit]:
        """Return the segments that match best, best first, in one session or in all."""
        asked = parse_query(query, filters)
        with self._transaction() as db:
            sid = None if session_id is None else sid_of(db, session_id)
            return [
                StoreHit(session_id=name, key=key, score=score, doc=doc)
                for score, name, key in rank(SqliteSource(db, sid), asked, limit)
                if (doc := get(db, name, "segments", key)) is not None
            ]

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        check_name("session_id", session_id)
        with self._transaction("IMMEDIATE") as db:
            sid = sid_of(db, session_id)
            for (seq,) in db.execute("SELECT seq FROM entries WHERE sid = ?", (sid,)).fetchall():
                forget_segment(db, sid, seq)
            db.execute("DELETE FROM documents WHERE sid = ?", (sid,))
            db.execute("DELETE FROM sessions WHERE sid = ?", (sid,))

    def close(self) -> None:
        """Close the database; it opens again by itself if the store is used again."""
        with self._lock:
            self._file.close()

    def before_fork(self) -> None:
        """Close the database: a child must not hold a connection that it did not open."""
        super().before_fork()
        self._file.close()

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
        """Give the database inside a transaction; an error rolls everything back."""
        with self._lock, sqlite_errors(self._file.path), self._file.watched():
            db = self._file.open()
            with transaction(db, kind):
                yield db
