"""The file of a sqlite store: created, opened, migrated, closed after an error, and salvaged when damaged.

Every handle holds a shared lock on a file next to it. Only a handle that is alone may set a damaged
database aside: otherwise another process would keep writing to what was set aside.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ctxgc.errors import (
    CtxgcError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from ctxgc.files import FileLock, create_private, remove, replace, set_aside
from ctxgc.stores.base import Put, StoreReport, prepare, unescape
from ctxgc.stores.sqlite_documents import row_of, write

_APPLICATION_ID = 0x43544743  # "CTGC"
CACHE_KILOBYTES = 64_000

# After these the connection is useless even once the cause is gone; they come before any write.
_HOPELESS = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_SALVAGE_STEP = 64
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_HINTS = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space and call again",
    sqlite3.SQLITE_IOERR: "the disk is full or failed: free some space, or check the system log",
    sqlite3.SQLITE_READONLY: "the file or its file system is read-only: make it writable, "
    "or choose another path",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be created or opened: check its directory's permissions "
    "and how many files are open",
    sqlite3.SQLITE_PERM: "this user may not open the file: correct the permissions",
    sqlite3.SQLITE_TOOBIG: "the document is larger than SQLite allows",
}


class SqliteFile:
    """One connection to a database file, opened when it is needed."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.reports: list[StoreReport] = []
        self._timeout = timeout
        self._marker = path.with_name(f"{path.name}.is-damaged")
        self._lock = FileLock(path.with_name(f"{path.name}.lock"), timeout)
        self._db: sqlite3.Connection | None = None

    def open(self) -> sqlite3.Connection:
        """Return the connection; a database known to be damaged is salvaged first."""
        if self._db is None:
            create_private(self.path)
            if self._marker.exists():
                self._save()
            self._lock.acquire(shared=True)
            try:
                self._check_saved()
                with self.watched():
                    self._db = self._connect()
            except BaseException:
                self._lock.release()
                raise
        return self._db

    def close(self) -> None:
        """Close the connection."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()
            self._lock.release()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Mark a file that seems damaged, for the next open, and close a connection that became useless.

        After a disk error the connection is kept, because it knows which pages of the log count: a new
        one could mistake a commit that failed in its last step for a good one.
        """
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_CORRUPT:
                create_private(self._marker)
            if code in _HOPELESS:
                self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._set_up(db)
        except BaseException:
            db.close()
            raise
        return db

    def _set_up(self, db: sqlite3.Connection) -> None:
        self._use_log(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
        migrate(db, self.path)

    def _use_log(self, db: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._timeout
        mode = db.execute("PRAGMA journal_mode").fetchone()[0]
        while mode != "wal":
            try:
                mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                # SQLite does not wait here by itself if two processes create a file at once.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
            else:
                self._check_log(mode)

    def _check_log(self, mode: str) -> None:
        """Make sure that SQLite did not decline the log, which it does without an error."""
        if mode != "wal":
            raise StoreError(
                f"{self.path}: SQLite cannot keep a write-ahead log here",
                hint="put the store on a disk of this machine, or use a json: store",
                path=str(self.path),
                found=mode,
            )

    def _save(self) -> None:
        """Replace a damaged database by one with all that can be read, if no other process uses it."""
        alone = FileLock(self._lock.path, 0)
        try:
            alone.acquire()
        except StoreBusyError:
            return  # others use it, or are salvaging it
        try:
            if self._marker.exists() and not _is_sound(self.path):
                self._replace_damaged()
            remove(self._marker)
        finally:
            alone.release()

    def _check_saved(self) -> None:
        """Refuse a damaged database that others use; whoever was salvaging it has finished by now."""
        if self._marker.exists():
            raise StoreDamagedError(
                f"{self.path} is damaged and in use by other processes",
                hint="close them, then open the store again: what can be read will be saved",
                path=str(self.path),
            )

    def _replace_damaged(self) -> None:
        fresh = self.path.with_name(f"{self.path.name}.salvaged")
        remove(fresh)
        create_private(fresh)
        saved, lost = _salvage(self.path, fresh)
        log, shared = (self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))
        asides = [set_aside(path) for path in (self.path, log) if path.exists()]
        for path in (log, shared):
            remove(path)
        replace(fresh, self.path)
        message = f"{self.path} is damaged: {saved} documents saved, {lost} lost"
        names = ", ".join(aside.name for aside in asides)
        self.reports.append(
            StoreReport(
                kind="damaged",
                message=f"{message}; set aside as {names}",
                set_aside=str(asides[0]),
                saved=saved,
                lost=lost,
            )
        )


# -- Transactions and errors


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "DEFERRED") -> Iterator[None]:
    """Run the block in one transaction; an error rolls everything back."""
    try:
        # Inside the try: a Ctrl-C while it waits for others is raised once it has begun.
        db.execute(f"BEGIN {kind}")
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a disk error has already rolled back
            db.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn an error of SQLite into a StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error


def _translated(path: Path, error: sqlite3.Error) -> StoreError:
    """Return our error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    details = {"path": str(path), "errno": getattr(error, "sqlite_errorname", "unknown")}
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusyError(
            f"another process holds {path}", hint="call again, or end that process", **details
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreDamagedError(
            f"{path} is not a SQLite database",
            hint="name another file, or move this one away; it was left as it is",
            **details,
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreDamagedError(
            f"{path} is damaged: {error}",
            hint="open the store again while no other process uses it: what can be read will be saved",
            **details,
        )
    return StoreError(f"{path}: {error}", hint=_HINTS.get(code, ""), **details)


# -- Versions


def _v1_sessions_documents_and_search(db: sqlite3.Connection) -> None:
    """Create the tables of sessions, of their documents, and of the search index.

    `search` has the words and marks of each segment, `entries` the padded words that scores are counted
    from; `seq` is the order of insertion and is never reused.
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


def _v2_digests(db: sqlite3.Connection) -> None:
    """Documents carry digests from here on; the tables stay as they are, and those before have none."""


# Append only: the place in this list is the version of the file.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _v1_sessions_documents_and_search,
    _v2_digests,
)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Migrate a file to the newest version, in one transaction.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
        StoreDamagedError: it is another program's database.
    """
    with transaction(db):
        version = _version(db, path)
    if version == len(MIGRATIONS):
        return
    with transaction(db, "IMMEDIATE"):
        # Checked again: another process may have been faster.
        for step in MIGRATIONS[_version(db, path) :]:
            step(db)
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the version of a file; call it inside a transaction, so that the answers agree."""
    application, version, tables = (
        int(db.execute(question).fetchone()[0])
        for question in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_schema",
        )
    )
    if application != _APPLICATION_ID and (application or version or tables):
        raise StoreDamagedError(
            f"{path} is a SQLite database, but not a ctxgc store",
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


# -- Salvage


def _is_sound(path: Path) -> bool:
    """Return whether a database has no damage after all: a disk error can look like damage."""
    try:
        with closing(_connect(path)) as db:
            answers = db.execute("PRAGMA integrity_check(1)").fetchall()
            db.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.Error as error:
        _only_damage(error)
        return False
    return answers == [("ok",)]


def _salvage(damaged: Path, fresh: Path) -> tuple[int, int]:
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
        put = Put(collection, *row_of(collection, key, doc))
        write(target, name, prepare(name, [put]))
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
    """Yield the rows of all documents, None for each that cannot be read."""
    highest, last = _highest(source), 0
    while last < highest:
        try:
            yield from source.execute(
                """SELECT sid, collection, key, doc FROM documents
                   WHERE seq > ? AND seq <= ? ORDER BY seq""",
                (last, last + _SALVAGE_STEP),
            ).fetchall()
        except sqlite3.Error as error:
            _only_damage(error)
            yield from (_row(source, seq) for seq in range(last + 1, last + _SALVAGE_STEP + 1))
        last += _SALVAGE_STEP


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
    """Raise an error that is not damage: then nothing may be counted as lost."""
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _DAMAGE:
        raise error
