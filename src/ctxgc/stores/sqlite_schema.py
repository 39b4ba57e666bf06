"""The tables of a sqlite store, and the steps that lead from every older version to this one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ctxgc.errors import StoreDamagedError, StoreVersionError
from ctxgc.stores.sqlite_errors import transaction

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
