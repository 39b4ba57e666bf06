"""The rows of a sqlite store: sessions, documents and search entries, inside a transaction of the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ctxgc.core import utc_now
from ctxgc.stores.base import (
    COLLECTIONS,
    CollectionName,
    Prepared,
    SessionInfo,
    damaged_document,
    escape,
    opened,
    unescape,
)
from ctxgc.stores.search import CANDIDATES, COMMON, Candidate, Query, SearchEntry, index_entry

_Growth = tuple[int, int]
"""How many segments and words a write adds to a session."""


def write(db: sqlite3.Connection, session_id: str, writes: Sequence[Prepared]) -> int:
    """Write a batch and return the session's new revision."""
    moment = utc_now().isoformat()
    sid, revision = db.execute(
        """INSERT INTO sessions (session_id, revision, created_at, updated_at)
           VALUES (?1, 1, ?2, ?2) ON CONFLICT (session_id)
           DO UPDATE SET revision = revision + 1, updated_at = ?2 RETURNING sid, revision""",
        (escape(session_id), moment),
    ).fetchone()
    segments = length = 0
    for write in writes:
        added = _put(db, sid, write) if write.doc is not None else _drop(db, sid, write)
        segments, length = segments + added[0], length + added[1]
    db.execute(
        "UPDATE sessions SET segments = segments + ?, words = words + ? WHERE sid = ?",
        (segments, length, sid),
    )
    return int(revision)


def _put(db: sqlite3.Connection, sid: int, write: Prepared) -> _Growth:
    key = escape(write.key)
    (seq,) = db.execute(
        """INSERT INTO documents (sid, collection, key, doc) VALUES (?, ?, ?, ?)
           ON CONFLICT (sid, collection, key) DO UPDATE SET doc = excluded.doc RETURNING seq""",
        (sid, write.collection, key, write.text),
    ).fetchone()
    if write.collection != "segments" or write.doc is None:
        return 0, 0
    return _index_segment(db, sid, seq, key, write.doc)


def _drop(db: sqlite3.Connection, sid: int, write: Prepared) -> _Growth:
    gone = db.execute(
        "DELETE FROM documents WHERE sid = ? AND collection = ? AND key = ? RETURNING seq",
        (sid, write.collection, escape(write.key)),
    ).fetchall()
    if not gone or write.collection != "segments":
        return 0, 0
    return forget_segment(db, sid, gone[0][0])


def revision(db: sqlite3.Connection, session_id: str) -> int:
    """Return the revision of a session, 0 for an unknown one."""
    name = escape(session_id)
    row = db.execute("SELECT revision FROM sessions WHERE session_id = ?", (name,)).fetchone()
    return int(row[0]) if row else _none(db, name)


def sid_of(db: sqlite3.Connection, session_id: str) -> int:
    """Return the number of a session, 0 for an unknown one."""
    name = escape(session_id)
    row = db.execute("SELECT sid FROM sessions WHERE session_id = ?", (name,)).fetchone()
    return int(row[0]) if row else _none(db, name)


def _none(db: sqlite3.Connection, name: str) -> int:
    """Return 0 for a session that is not there; one that only the index has lost is damage, not new."""
    found = db.execute("SELECT 1 FROM sessions NOT INDEXED WHERE session_id = ?", (name,))
    if found.fetchone() is not None:
        error = sqlite3.DatabaseError("the index of the sessions is not that of the table")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    return 0


def get(
    db: sqlite3.Connection, session_id: str, collection: CollectionName, key: str
) -> dict[str, Any] | None:
    """Return one document, or None."""
    row = db.execute(
        """SELECT doc FROM documents JOIN sessions USING (sid)
           WHERE session_id = ? AND collection = ? AND key = ?""",
        (escape(session_id), collection, escape(key)),
    ).fetchone()
    return opened(collection, key, row[0]) if row else None


def row_of(collection: CollectionName, key: object, doc: object) -> tuple[str, dict[str, Any]]:
    """Return a document with its key, as they are in a row.

    Raises:
        StoreDamagedError: they are not what was written.
    """
    try:
        name = unescape(key) if isinstance(key, str) else None
    except ValueError:
        name = None
    if name is None:
        raise damaged_document(collection, key, "its key cannot be read")
    return name, opened(collection, name, doc)


def info(row: tuple[Any, ...], counts: dict[tuple[int, str], int]) -> SessionInfo:
    """Return the info in a row of `sessions`, with the counts of its collections."""
    sid, session_id, revision, created_at, updated_at = row
    return SessionInfo(
        session_id=unescape(session_id),
        revision=revision,
        created_at=datetime.fromisoformat(created_at),
        updated_at=datetime.fromisoformat(updated_at),
        counts={name: counts.get((sid, name), 0) for name in COLLECTIONS},
    )


# -- The search index: FTS5 finds candidates, `search` scores them


def _index_segment(
    db: sqlite3.Connection, sid: int, seq: int, key: str, doc: dict[str, Any]
) -> _Growth:
    """Index a segment, new or changed."""
    old = _entry(db, seq)
    new = index_entry(doc, old)
    if old == new:
        return 0, 0
    if old is None or old.digest != new.digest or old.marks != new.marks:
        if old is not None:
            _forget_terms(db, sid, seq, old)
        db.execute("INSERT INTO search (rowid, terms) VALUES (?, ?)", (seq, _terms(sid, new)))
    values = (seq, sid, key, new.length, new.created, new.digest, _joined(new.marks), new.words)
    db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    return (0, new.length - old.length) if old else (1, new.length)


def forget_segment(db: sqlite3.Connection, sid: int, seq: int) -> _Growth:
    """Remove a segment from the index."""
    old = _entry(db, seq)
    if old is None:
        return 0, 0
    _forget_terms(db, sid, seq, old)
    db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
    return -1, -old.length


class SqliteSource:
    """Answers the questions of `search.rank` about one session, or about all."""

    def __init__(self, db: sqlite3.Connection, sid: int | None) -> None:
        self._db = db
        self._sid = sid
        self._names: dict[int, str] = {}

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        where, values = ("", ()) if self._sid is None else ("WHERE sid = ?", (self._sid,))
        sums = f"SELECT total(segments), total(words) FROM sessions {where}"  # noqa: S608
        segments, length = self._db.execute(sums, values).fetchone()
        return int(segments), int(length)

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        found = self._db.execute(
            "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ? LIMIT ?)",
            (self._match((word,), ()), COMMON),
        )
        return int(found.fetchone()[0])

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest candidates that have all words and pass the filters."""
        rows = self._db.execute(
            """SELECT e.sid, e.key, e.length, e.words
               FROM search JOIN entries e ON e.seq = search.rowid
               WHERE search MATCH ?1 AND (?2 IS NULL OR e.created >= ?2)
                                    AND (?3 IS NULL OR e.created <= ?3)
               ORDER BY search.rowid DESC LIMIT ?4""",
            (self._match(asked.words, asked.marks), asked.after, asked.before, CANDIDATES),
        )
        return [
            Candidate(self._session(sid), unescape(key), length, words)
            for sid, key, length, words in rows
        ]

    def _session(self, sid: int) -> str:
        name = self._names.get(sid)
        if name is None:
            found = self._db.execute("SELECT session_id FROM sessions WHERE sid = ?", (sid,))
            name = self._names[sid] = unescape(found.fetchone()[0])
        return name

    def _match(self, words: Iterable[str], marks: Iterable[tuple[str, ...]]) -> str:
        """Return a query in FTS5's language; every term is quoted, so that none is an operator."""
        groups = [(word,) for word in words] + list(marks)
        if self._sid is not None:
            groups.insert(0, (_session_mark(self._sid),))
        return " AND ".join("(" + " OR ".join(f'"{t}"' for t in group) + ")" for group in groups)


def _entry(db: sqlite3.Connection, seq: int) -> SearchEntry | None:
    row = db.execute(
        "SELECT words, length, marks, created, digest FROM entries WHERE seq = ?", (seq,)
    ).fetchone()
    if row is None:
        return None
    words, length, marks, created, digest = row
    return SearchEntry(words, length, frozenset(marks.split()), created, digest)


def _forget_terms(db: sqlite3.Connection, sid: int, seq: int, old: SearchEntry) -> None:
    values = (seq, _terms(sid, old))
    db.execute("INSERT INTO search (search, rowid, terms) VALUES ('delete', ?, ?)", values)


def _terms(sid: int, said: SearchEntry) -> str:
    return " ".join([_session_mark(sid), *sorted(said.marks), *sorted(set(said.words.split()))])


def _session_mark(sid: int) -> str:
    return f"=s{sid}"


def _joined(marks: frozenset[str]) -> str:
    return " ".join(sorted(marks))
