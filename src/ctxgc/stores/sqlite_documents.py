"""Sessions and documents in the tables of a sqlite store, inside a transaction of the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxgc.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from ctxgc.stores.base import COLLECTIONS, Collection, SessionInfo
from ctxgc.stores.documents import Prepared, decode, escape, unescape
from ctxgc.stores.search import CANDIDATES, COMMON, Candidate, Query, SearchEntry, entry
from ctxgc.stores.tables import now

# -- The search side of a sqlite store: FTS5 finds the candidates, `search` scores them


Growth = tuple[int, int]


def index_segment(
    db: sqlite3.Connection, sid: int, seq: int, key: str, doc: dict[str, Any]
) -> Growth:
    """Index a segment, new or changed; return how many segments and words that adds."""
    old = _entry(db, seq)
    new = entry(doc, old)
    if old == new:
        return 0, 0
    if old is None or old.digest != new.digest or old.marks != new.marks:
        if old is not None:
            _forget_terms(db, sid, seq, old)
        db.execute("INSERT INTO search (rowid, terms) VALUES (?, ?)", (seq, _terms(sid, new)))
    values = (seq, sid, key, new.length, new.created, new.digest, _joined(new.marks), new.words)
    db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    return (0, new.length - old.length) if old else (1, new.length)


def forget_segment(db: sqlite3.Connection, sid: int, seq: int) -> Growth:
    """Take a segment out of the index; return how many segments and words that adds."""
    old = _entry(db, seq)
    if old is None:
        return 0, 0
    _forget_terms(db, sid, seq, old)
    db.execute("DELETE FROM entries WHERE seq = ?", (seq,))
    return -1, -old.length


class SqliteSource:
    """Answers the questions of `search.find` about one session, or about all."""

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
        """Return a question in FTS5's language; every term is quoted, so that none is an operator."""
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


def write(db: sqlite3.Connection, session_id: str, writes: Sequence[Prepared]) -> int:
    """Write a batch and return the session's new revision."""
    moment = now().isoformat()
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


def _put(db: sqlite3.Connection, sid: int, write: Prepared) -> tuple[int, int]:
    key = escape(write.key)
    (seq,) = db.execute(
        """INSERT INTO documents (sid, collection, key, doc) VALUES (?, ?, ?, ?)
           ON CONFLICT (sid, collection, key) DO UPDATE SET doc = excluded.doc RETURNING seq""",
        (sid, write.collection, key, write.text),
    ).fetchone()
    if write.collection != "segments" or write.doc is None:
        return 0, 0
    return index_segment(db, sid, seq, key, write.doc)


def _drop(db: sqlite3.Connection, sid: int, write: Prepared) -> tuple[int, int]:
    gone = db.execute(
        "DELETE FROM documents WHERE sid = ? AND collection = ? AND key = ? RETURNING seq",
        (sid, write.collection, escape(write.key)),
    ).fetchall()
    if not gone or write.collection != "segments":
        return 0, 0
    return forget_segment(db, sid, gone[0][0])


def revision(db: sqlite3.Connection, session_id: str) -> int:
    """Return the revision of a session, 0 for an unknown one."""
    row = db.execute(
        "SELECT revision FROM sessions WHERE session_id = ?", (escape(session_id),)
    ).fetchone()
    return int(row[0]) if row else 0


def sid_of(db: sqlite3.Connection, session_id: str) -> int:
    """Return the number of a session, 0 for an unknown one."""
    row = db.execute(
        "SELECT sid FROM sessions WHERE session_id = ?", (escape(session_id),)
    ).fetchone()
    return int(row[0]) if row else 0


def get(
    db: sqlite3.Connection, session_id: str, collection: Collection, key: str
) -> dict[str, Any] | None:
    """Return one document, or None."""
    row = db.execute(
        """SELECT doc FROM documents JOIN sessions USING (sid)
           WHERE session_id = ? AND collection = ? AND key = ?""",
        (escape(session_id), collection, escape(key)),
    ).fetchone()
    return decode(row[0]) if row else None


def info(row: tuple[Any, ...], counts: dict[tuple[int, str], int]) -> SessionInfo:
    """Return what a row of `sessions` tells, with the counts of its collections."""
    sid, session_id, revision, created_at, updated_at = row
    return SessionInfo(
        session_id=unescape(session_id),
        revision=revision,
        created_at=datetime.fromisoformat(created_at),
        updated_at=datetime.fromisoformat(updated_at),
        counts={name: counts.get((sid, name), 0) for name in COLLECTIONS},
    )


# -- Transactions of SQLite, and what it complains about as errors of ours that say what to do


_HINTS = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space and call again",
    sqlite3.SQLITE_IOERR: "the disk is full or failed: free some space, or look at the system log",
    sqlite3.SQLITE_READONLY: "the file or its file system is read-only: make it writable, "
    "or choose another path",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be made or opened: look at its directory's permissions "
    "and at how many files are open",
    sqlite3.SQLITE_PERM: "this user may not open the file: correct the permissions",
    sqlite3.SQLITE_TOOBIG: "the document is larger than SQLite takes",
}


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "DEFERRED") -> Iterator[None]:
    """Let all that is read see one moment; an error takes everything back that was written."""
    try:
        # Inside: Ctrl-C while it waits for others is raised when it has begun.
        db.execute(f"BEGIN {kind}")
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # an error of the disk has rolled back already
            db.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn an error of SQLite into a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(path, error) from error


def translated(path: Path, error: sqlite3.Error) -> StoreError:
    """Return our error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    details = {"path": str(path), "errno": getattr(error, "sqlite_errorname", "unknown")}
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusyError(
            f"another process holds {path}", hint="call again, or end that process", **details
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreDamagedError(
            f"{path} is no SQLite database",
            hint="name another file, or move this one away; it was left as it is",
            **details,
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreDamagedError(
            f"{path} is damaged: {error}",
            hint="open the store again while nobody else uses it: what can be read will be saved",
            **details,
        )
    return StoreError(f"{path}: {error}", hint=_HINTS.get(code, ""), **details)


# -- The tables of a sqlite store, and the steps that lead from every older version to this one


APPLICATION_ID = 0x43544743  # "CTGC"


def v1_sessions_documents_and_search(db: sqlite3.Connection) -> None:
    """Make sessions, their documents, and what search knows of the segments.

    `search` has the words and marks of each segment, `entries` the text that is counted for scores;
    `seq` is the order of insertion, and is never given twice.
    """
    db.execute("""
        CREATE TABLE sessions (
            sid INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL UNIQUE,
            revision INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
            segments INTEGER NOT NULL DEFAULT 0, words INTEGER NOT NULL DEFAULT 0)""")
    db.execute("""
        CREATE TABLE documents (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, sid INTEGER NOT NULL, collection TEXT NOT NULL,
            key TEXT NOT NULL, doc TEXT NOT NULL, UNIQUE (sid, collection, key))""")
    db.execute("""
        CREATE TABLE entries (
            seq INTEGER PRIMARY KEY, sid INTEGER NOT NULL, key TEXT NOT NULL, length INTEGER NOT NULL,
            created INTEGER, digest BLOB NOT NULL, marks TEXT NOT NULL, words TEXT NOT NULL)""")
    db.execute("CREATE INDEX entries_by_session ON entries (sid)")
    db.execute("""
        CREATE VIRTUAL TABLE search USING fts5 (
            terms, content='', detail='none', columnsize=0, tokenize="ascii tokenchars '='")""")


# Append only: the place in this list is the version of the file.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (v1_sessions_documents_and_search,)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring a file to the newest version, in one transaction.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
        StoreDamagedError: it is a database of another program.
    """
    with transaction(db):
        version = _version(db, path)
    if version == len(MIGRATIONS):
        return
    with transaction(db, "IMMEDIATE"):
        # Asked again: another process may have come between.
        for step in MIGRATIONS[_version(db, path) :]:
            step(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the version of a file; only inside a transaction do the answers fit each other."""
    application, version, tables = (
        int(db.execute(question).fetchone()[0])
        for question in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_schema",
        )
    )
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreDamagedError(
            f"{path} is a database, but not one of ctxgc",
            hint="name another file; this one was left as it is",
            path=str(path),
        )
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"{path} was written in version {version}, this ctxgc reads {len(MIGRATIONS)}",
            hint="open it with a newer ctxgc; it was left as it is",
            found=version,
            known=len(MIGRATIONS),
        )
    return version
