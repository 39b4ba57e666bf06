"""Reading what can be read of a damaged sqlite store, into a fresh one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ctxgc.errors import CtxgcError
from ctxgc.stores.base import Put
from ctxgc.stores.documents import decode, prepare, unescape
from ctxgc.stores.sqlite_documents import write
from ctxgc.stores.sqlite_errors import transaction
from ctxgc.stores.sqlite_schema import migrate

_STEP = 64
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


def is_sound(path: Path) -> bool:
    """Tell whether a database has no damage after all: an error of the disk can look like one."""
    try:
        with closing(_connect(path)) as db:
            answers = db.execute("PRAGMA quick_check(1)").fetchall()
            db.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.Error as error:
        _only_damage(error)
        return False
    return answers == [("ok",)]


def salvage(damaged: Path, fresh: Path) -> tuple[int, int]:
    """Copy all documents that can be read, and return how many were saved and how many lost."""
    with closing(_connect(damaged)) as source, closing(_connect(fresh)) as target:
        migrate(target, fresh)
        with transaction(target):
            return _copy(source, target)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> tuple[int, int]:
    names = _sessions(source)
    saved = lost = 0
    for row in _rows(source):
        if row is not None and _is_saved(target, names, row):
            saved += 1
        else:
            lost += 1
    for name, revision, created_at, updated_at in names.values():
        target.execute(
            "UPDATE sessions SET revision = ?, created_at = ?, updated_at = ? WHERE session_id = ?",
            (revision, created_at, updated_at, name),
        )
    return saved, lost


def _is_saved(
    target: sqlite3.Connection, names: dict[int, tuple[str, int, str, str]], row: tuple[Any, ...]
) -> bool:
    sid, collection, key, doc = row
    name = unescape(names[sid][0]) if sid in names else f"recovered-{sid}"
    try:
        write(target, name, prepare(name, [Put(collection, unescape(key), decode(doc))]))
    except (CtxgcError, ValueError):
        return False
    return True


def _sessions(source: sqlite3.Connection) -> dict[int, tuple[str, int, str, str]]:
    try:
        rows = source.execute(
            "SELECT sid, session_id, revision, created_at, updated_at FROM sessions"
        )
        return {sid: (name, revision, *times) for sid, name, revision, *times in rows}
    except sqlite3.Error as error:
        _only_damage(error)
        return {}


def _rows(source: sqlite3.Connection) -> Iterator[tuple[Any, ...] | None]:
    """Return the rows of all documents, None for each that cannot be read."""
    highest, last = _highest(source), 0
    while last < highest:
        try:
            yield from source.execute(
                """SELECT sid, collection, key, doc FROM documents
                   WHERE seq > ? AND seq <= ? ORDER BY seq""",
                (last, last + _STEP),
            ).fetchall()
        except sqlite3.Error as error:
            _only_damage(error)
            yield from (_row(source, seq) for seq in range(last + 1, last + _STEP + 1))
        last += _STEP


def _row(source: sqlite3.Connection, seq: int) -> tuple[Any, ...] | None:
    try:
        row: tuple[Any, ...] | None = source.execute(
            "SELECT sid, collection, key, doc FROM documents WHERE seq = ?", (seq,)
        ).fetchone()
    except sqlite3.Error as error:
        _only_damage(error)
        return None
    return row


def _highest(source: sqlite3.Connection) -> int:
    try:
        row = source.execute("SELECT seq FROM sqlite_sequence WHERE name = 'documents'").fetchone()
    except sqlite3.Error as error:
        _only_damage(error)
        return 0
    return int(row[0]) if row else 0


def _only_damage(error: sqlite3.Error) -> None:
    """Raise again what is no damage: then nothing may be given up for lost."""
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _DAMAGE:
        raise error
