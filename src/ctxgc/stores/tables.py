"""All sessions of a store in memory: what the memory store is, and what the json store reads into.

Documents are kept as text, so that nobody can change them from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ctxgc.errors import InputError, StoreBusyError
from ctxgc.stores.base import COLLECTIONS, Collection, SearchFilters, SessionInfo, StoreHit
from ctxgc.stores.documents import Prepared, check_collection, check_name, decode, encode
from ctxgc.stores.index import Indexes, SessionIndex
from ctxgc.stores.search import find, query


class SessionTable:
    """The documents of one session, each collection in the order of first insertion."""

    def __init__(self, session_id: str, created_at: datetime) -> None:
        self.session_id = session_id
        self.revision = 0
        self.created_at = created_at
        self.updated_at = created_at
        self.docs: dict[Collection, dict[str, str]] = {name: {} for name in COLLECTIONS}
        self.orders: dict[str, int] = {}
        self._index: SessionIndex | None = None

    def info(self) -> SessionInfo:
        """Return what `sessions()` tells about it."""
        return SessionInfo(
            session_id=self.session_id,
            revision=self.revision,
            created_at=self.created_at,
            updated_at=self.updated_at,
            counts={name: len(docs) for name, docs in self.docs.items()},
        )

    def write(self, write: Prepared, order: int) -> None:
        """Put or drop one document; `order` is the number of a segment that is new."""
        if write.text is None:
            self.docs[write.collection].pop(write.key, None)
        else:
            self.docs[write.collection][write.key] = write.text
        if write.collection == "segments":
            self._write_segment(write, order)

    def index(self) -> SessionIndex:
        """Return the search index; it is made when it is first asked for, and kept up from then on."""
        if self._index is None:
            self._index = SessionIndex(self.session_id)
            for key, text in self.docs["segments"].items():
                self._index.put(key, self.orders[key], decode(text))
        return self._index

    def _write_segment(self, write: Prepared, order: int) -> None:
        if write.text is None:
            self.orders.pop(write.key, None)
        else:
            order = self.orders.setdefault(write.key, order)
        if self._index is None:
            return
        if write.doc is None:
            self._index.drop(write.key)
        else:
            self._index.put(write.key, order, write.doc)


class Tables:
    """The tables of all sessions."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionTable] = {}
        self.order = 0

    def check(self, session_id: str, expect: int | None) -> int:
        """Return the revision of a session.

        Raises:
            StoreBusyError: it is not the expected one.
        """
        found = self.revision(session_id)
        if expect is not None and expect != found:
            raise conflict(session_id, expect, found)
        return found

    def apply(self, session_id: str, writes: Iterable[Prepared], now: datetime) -> int:
        """Write a batch and return the session's new revision."""
        table = self.table(session_id, now)
        for write in writes:
            self.order += 1
            table.write(write, self.order)
        table.revision += 1
        table.updated_at = now
        return table.revision

    def restore(self, table: SessionTable, collection: Collection, key: str, doc: Any) -> bool:
        """Put a document that a file holds, and tell whether it is one."""
        try:
            check_name("key", key)
            write = Prepared(collection, key, encode(doc), doc)
        except InputError:
            return False
        self.order += 1
        table.write(write, self.order)
        return True

    def table(self, session_id: str, now: datetime) -> SessionTable:
        """Return the table of a session, made if it is new."""
        return self.sessions.setdefault(session_id, SessionTable(session_id, now))

    def revision(self, session_id: str) -> int:
        """Return the revision of a session, 0 for an unknown one."""
        table = self.sessions.get(session_id)
        return table.revision if table else 0

    def load(self, session_id: str, collection: Collection) -> list[tuple[str, dict[str, Any]]]:
        """Return the documents of a collection."""
        return [(key, decode(text)) for key, text in self._docs(session_id, collection).items()]

    def get(self, session_id: str, collection: Collection, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        text = self._docs(session_id, collection).get(key)
        return None if text is None else decode(text)

    def infos(self) -> list[SessionInfo]:
        """Return what is known of all sessions, in the order of their ids."""
        return [self.sessions[session_id].info() for session_id in sorted(self.sessions)]

    def search(
        self, text: str, session_id: str | None, filters: SearchFilters | None, limit: int
    ) -> list[StoreHit]:
        """Return the best segments of one session or of all."""
        asked = query(text, filters)
        tables = [self.sessions[name] for name in self._searched(session_id)]
        found = find(Indexes([table.index() for table in tables]), asked, limit)
        return [
            StoreHit(session_id=name, key=key, score=score, doc=decode(self._segment(name, key)))
            for score, name, key in found
        ]

    def _searched(self, session_id: str | None) -> list[str]:
        if session_id is None:
            return list(self.sessions)
        return [session_id] if session_id in self.sessions else []

    def _segment(self, session_id: str, key: str) -> str:
        return self.sessions[session_id].docs["segments"][key]

    def _docs(self, session_id: str, collection: Collection) -> dict[str, str]:
        check_collection(collection)
        table = self.sessions.get(session_id)
        return table.docs[collection] if table else {}


def conflict(session_id: str, expected: int, found: int) -> StoreBusyError:
    """Return the error of a commit that came too late."""
    return StoreBusyError(
        f"session {session_id!r} is at revision {found}, not {expected}",
        hint="load it again: another session object or process has committed to it",
        session_id=session_id,
        expected=expected,
        found=found,
    )


def now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)
