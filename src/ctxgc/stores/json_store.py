"""The json store: one readable file that one can open, copy and carry away, shared by processes.

The documents are held in memory too; before every answer the store looks whether another process
has written, and before every commit it locks the others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.files import FileLock, append_durable, os_errors, remove, set_aside, write_atomic
from ctxgc.stores import json_journal as journal
from ctxgc.stores.base import StoreReport, Write
from ctxgc.stores.documents import check_name, prepare
from ctxgc.stores.json_file import Contents, parse, render
from ctxgc.stores.tables import Tables, TableStore, now

# -- The files of the json store: the readable one, and the journal that continues it


SMALLEST_FOLD = 1 << 18
_TRIES = 20

Stamp = tuple[int, int, int] | None
_UNREAD: tuple[Stamp, Stamp] = ((-1, -1, -1), (-1, -1, -1))


class JsonDisk:
    """Reads and writes the two files; `tables` is what they said at the last `refresh`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path.with_name(f"{path.name}.journal")
        self.reports: list[StoreReport] = []
        self._contents = Contents(Tables())
        self._seen: tuple[Stamp, Stamp] = (None, None)
        self._end = 0

    @property
    def tables(self) -> Tables:
        """What the files said when they were last read, and what was written since."""
        return self._contents.tables

    def is_current(self) -> bool:
        """Tell whether nobody else has written since the last look."""
        return self._stamps() == self._seen

    def refresh_unlocked(self) -> None:
        """Take over what other processes wrote, without the lock: read until nobody wrote meanwhile.

        Raises:
            StoreBusyError: others wrote whenever it was read.
            StoreVersionError: a newer ctxgc wrote the files.
        """
        for _ in range(_TRIES):
            self.refresh(repair=False)
            if self.is_current():
                return
        raise StoreBusyError(f"{self.path} was written to whenever it was read", hint="call again")

    def refresh(self, *, repair: bool = True) -> None:
        """Take over what other processes wrote, and repair what is damaged.

        Raises:
            StoreVersionError: a newer ctxgc wrote the files.
        """
        stamps = self._stamps()
        if stamps == self._seen:
            return
        if stamps[0] is not None and stamps[0] == self._seen[0] and self._has_grown(stamps[1]):
            problem = self._replay(self._read(self.journal), self._end)
        else:
            problem = self._reload()
        self._seen = stamps
        # What is being written just now is not yet whole, and no damage.
        if problem is not None and (repair or self.is_current()):
            self._report(problem, repair=repair)

    @contextmanager
    def appended(self, line: bytes) -> Iterator[None]:
        """Make a line of the journal durable; what is done inside changes the tables in the same way.

        Who is interrupted between the two reads all again.
        """
        if self._seen[0] is None:
            self.fold()
        if self._end == 0:
            head = journal.header(self._contents.generation)
            write_atomic(self.journal, head)
            self._end = len(head)
        seen, self._seen = self._seen, _UNREAD
        try:
            append_durable(self.journal, line, self._end)
        except StoreError:
            self._seen = seen
            raise
        self._end += len(line)
        yield
        self._seen = self._stamps()

    def fold(self) -> None:
        """Write the readable file anew and remove the journal."""
        generation = self._contents.generation + 1
        # Inodes are used again and clocks are slow: the time alone must tell the new file from all before.
        seen = self._stamp(self.path)
        write_atomic(self.path, render(self.tables, generation), after=seen[1] if seen else 0)
        self._contents.generation = generation
        self._end = 0
        remove(self.journal)
        self._seen = self._stamps()

    def fold_if_due(self) -> None:
        """Fold a journal that has outgrown the file; the disk may refuse, for nothing is lost."""
        size = self._seen[0][2] if self._seen[0] else 0
        if self._end > max(SMALLEST_FOLD, size):
            with suppress(StoreError):
                self.fold()

    def has_journal(self) -> bool:
        """Tell whether there are commits that the readable file does not show."""
        return self._end > 0

    def _has_grown(self, stamp: Stamp) -> bool:
        seen = self._seen[1]
        if seen is None or stamp is None or self._end == 0:
            return False
        return stamp[0] == seen[0] and stamp[2] >= self._end

    def _reload(self) -> StoreReport | None:
        data, log = self._read(self.path), self._read(self.journal)
        exists = self._stamp(self.path) is not None
        self._contents = parse(self.path, data, now()) if exists else Contents(Tables())
        self._end = 0
        problem = self._contents.report
        if log and journal.generation_of(self.journal, log) >= self._contents.generation:
            problem = self._replay(log, 0) or problem
        return problem

    def _replay(self, data: bytes, start: int) -> StoreReport | None:
        done = journal.replay(data, self.tables, start)
        self._end = done.end
        if done.bad:
            message = f"{done.bad} commits in {self.journal} are damaged and were left out"
            return StoreReport(kind="damaged", message=message, lost=done.bad)
        if done.torn:
            message = f"{done.torn} bytes of an unfinished commit stand in {self.journal}"
            return StoreReport(kind="torn", message=message)
        return None

    def _report(self, problem: StoreReport, *, repair: bool) -> None:
        """Note a problem; damaged files are kept beside the new one that holds what was saved."""
        if problem.kind == "damaged" and repair:
            asides = [set_aside(path) for path in (self.path, self.journal) if path.exists()]
            self.fold()
            names = ", ".join(aside.name for aside in asides)
            problem = StoreReport(
                kind="damaged",
                message=f"{problem.message}; set aside as {names}",
                set_aside=str(asides[0]),
                saved=sum(sum(info.counts.values()) for info in self.tables.infos()),
                lost=problem.lost,
            )
        if problem not in self.reports:
            self.reports.append(problem)

    def _stamps(self) -> tuple[Stamp, Stamp]:
        return self._stamp(self.path), self._stamp(self.journal)

    def _stamp(self, path: Path) -> Stamp:
        with os_errors(path, "look at"), suppress(FileNotFoundError):
            status = path.stat()
            return status.st_ino, status.st_mtime_ns, status.st_size
        return None

    def _read(self, path: Path) -> bytes:
        with os_errors(path, "read"), suppress(FileNotFoundError):
            return path.read_bytes()
        return b""


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
