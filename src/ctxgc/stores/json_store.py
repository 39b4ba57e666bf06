"""The json store: one readable file that one can open, copy and carry away, shared by processes.

The documents are held in memory too; before every answer the store looks whether another process
has written, and before every commit it locks the others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreError
from ctxgc.stores import journal
from ctxgc.stores.base import StoreReport, Write
from ctxgc.stores.documents import check_name, prepare
from ctxgc.stores.files import FileLock
from ctxgc.stores.json_disk import JsonDisk
from ctxgc.stores.table_store import TableStore
from ctxgc.stores.tables import Tables, now

DEFAULT_PATH = "artifacts/context_stash.json"
LOCK_TIMEOUT = 30.0

_CANNOT_LOCK = {"EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"}


class JsonStore(TableStore):
    """Keeps sessions in one JSON file.

    Raises:
        StoreVersionError: a newer ctxgc wrote the file.
        StoreError: the file cannot be read.
    """

    def __init__(self, path: str | Path = DEFAULT_PATH, *, timeout: float = LOCK_TIMEOUT) -> None:
        super().__init__()
        self.url = f"json:{path}"
        self._disk = JsonDisk(Path(path).absolute())
        self._timeout = timeout
        with self._current():
            pass

    @property
    def reports(self) -> tuple[StoreReport, ...]:
        """What this handle had to repair, oldest first."""
        return tuple(self._disk.reports)

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision."""
        prepared = prepare(session_id, writes)
        with self._writing() as tables:
            found = tables.check(session_id, expect)
            if not prepared:
                return found
            moment = now()
            with self._disk.appended(journal.commit_line(session_id, found + 1, moment, prepared)):
                tables.apply(session_id, prepared, moment)
            self._disk.fold_if_due()
            return found + 1

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        check_name("session_id", session_id)
        with self._writing() as tables:
            if session_id in tables.sessions:
                with self._disk.appended(journal.drop_line(session_id)):
                    del tables.sessions[session_id]

    def close(self) -> None:
        """Fold the journal into the file. If the disk refuses, the journal keeps what it has."""
        with suppress(StoreError):
            if self._disk.has_journal():
                with self._writing():
                    self._disk.fold()

    def _process_lock(self) -> FileLock:
        return FileLock(self._disk.path.with_name(f"{self._disk.path.name}.lock"), self._timeout)

    @contextmanager
    def _writing(self) -> Iterator[Tables]:
        with self._lock, self._process_lock():
            self._disk.refresh()
            yield self._disk.tables

    @contextmanager
    def _current(self) -> Iterator[Tables]:
        with self._lock:
            if not self._disk.is_current():
                self._refresh()
            yield self._disk.tables

    def _refresh(self) -> None:
        lock = self._process_lock()
        try:
            lock.acquire()
        except StoreError as error:
            if error.details.get("errno") not in _CANNOT_LOCK:
                raise
            self._disk.refresh_unlocked()
            return
        try:
            self._disk.refresh()
        finally:
            lock.release()
