"""Sessions and documents in the tables of a sqlite store, inside a transaction of the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ctxgc.stores.base import COLLECTIONS, Collection, SessionInfo
from ctxgc.stores.documents import Prepared, decode, escape, unescape
from ctxgc.stores.sqlite_segments import forget_segment, index_segment
from ctxgc.stores.tables import now


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
