"""The file of a sqlite store: how it is made, opened, given up after an error, and saved when damaged.

Every handle holds a shared lock on the file beside it. Only a handle that is alone may set a damaged
database aside, for otherwise another process would go on writing into what was set aside.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ctxgc.errors import CtxgcError, StoreBusyError, StoreDamagedError, StoreError
from ctxgc.files import FileLock, create_private, remove, replace, set_aside
from ctxgc.stores.base import Put, StoreReport
from ctxgc.stores.documents import decode, prepare, unescape
from ctxgc.stores.sqlite_documents import migrate, transaction, write

# -- Reading what can be read of a damaged sqlite store, into a fresh one


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


CACHE_KILOBYTES = 64_000

# After these the connection stays useless when the cause is gone; they come before anything is written.
_HOPELESS = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class SqliteFile:
    """One connection to a database file, made when it is needed."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.reports: list[StoreReport] = []
        self._timeout = timeout
        self._marker = path.with_name(f"{path.name}.is-damaged")
        self._lock = FileLock(path.with_name(f"{path.name}.lock"), timeout)
        self._db: sqlite3.Connection | None = None

    def open(self) -> sqlite3.Connection:
        """Return the connection; a database that is known to be damaged is saved first."""
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
        """Mark a file that seems damaged, for the next open, and give up what cannot be used again.

        After an error of the disk the connection is kept, for it knows which pages of the log count:
        a new one could take a commit that failed in its last step for a good one.
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
                # SQLite does not wait here by itself when two processes make a file at once.
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
        """Put a database with all that can be read in the place of the damaged one, if nobody uses it."""
        alone = FileLock(self._lock.path, 0)
        try:
            alone.acquire()
        except StoreBusyError:
            return  # others use it, or save it at this moment
        try:
            if self._marker.exists() and not is_sound(self.path):
                self._replace_damaged()
            remove(self._marker)
        finally:
            alone.release()

    def _check_saved(self) -> None:
        """Refuse a damaged database that others use; whoever is saving it has ended by now."""
        if self._marker.exists():
            raise StoreDamagedError(
                f"{self.path} is damaged, and other processes use it",
                hint="close them, then open the store again: what can be read will be saved",
                path=str(self.path),
            )

    def _replace_damaged(self) -> None:
        fresh = self.path.with_name(f"{self.path.name}.salvaged")
        remove(fresh)
        create_private(fresh)
        saved, lost = salvage(self.path, fresh)
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
