"""Transactions of SQLite, and what it complains about as errors of ours that say what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreDamagedError, StoreError

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
