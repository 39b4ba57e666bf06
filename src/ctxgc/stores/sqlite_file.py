"""The file of a sqlite store: how it is made, opened, given up after an error, and saved when damaged.

Every handle holds a shared lock on the file beside it. Only a handle that is alone may set a damaged
database aside, for otherwise another process would go on writing into what was set aside.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreDamagedError, StoreError
from ctxgc.stores.base import StoreReport
from ctxgc.stores.files import FileLock, create_private, remove, replace, set_aside
from ctxgc.stores.sqlite_salvage import is_sound, salvage
from ctxgc.stores.sqlite_schema import migrate

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
