"""The json store: one readable file that people can open and copy, shared by processes.

Commits go to a journal next to the readable file, which is folded into it when it has grown, and on close.
The first line of the journal names the generation of the file that it continues; a journal that continues
another generation was folded already. The documents are held in memory too: before every answer the store
checks whether another process has written, and before every commit it locks the others out.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.core import utc_now
from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.files import FileLock, append_durable, os_errors, remove, set_aside, write_atomic
from ctxgc.stores.base import (
    CollectionName,
    Prepared,
    StoreReport,
    Write,
    check_name,
    encode,
    prepare,
    too_new,
)
from ctxgc.stores.json_file import JsonContents, parse, render
from ctxgc.stores.tables import Tables, TableStore

LOCK_TIMEOUT = 30.0

_CANNOT_LOCK = {"EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"}

SMALLEST_FOLD = 1 << 18
_TRIES = 20

Stamp = tuple[int, int, int] | None
_UNREAD: tuple[Stamp, Stamp] = ((-1, -1, -1), (-1, -1, -1))
_JOURNAL_VERSION = 1


class JsonStore(TableStore):
    """Keeps sessions in one JSON file.

    Raises:
        StoreVersionError: a newer ctxgc wrote the file.
        StoreError: the file cannot be read.
    """

    def __init__(self, path: str | Path, *, timeout: float = LOCK_TIMEOUT) -> None:
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
            moment = utc_now()
            with self._disk.appended(_commit_line(session_id, found + 1, moment, prepared)):
                tables.apply(session_id, prepared, moment)
            self._disk.fold_if_due()
            return found + 1

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        check_name("session_id", session_id)
        with self._writing() as tables:
            if session_id in tables.sessions:
                with self._disk.appended(_drop_line(session_id)):
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


# -- The two files


class JsonDisk:
    """Reads and writes the two files; `tables` is what they held at the last `refresh`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path.with_name(f"{path.name}.journal")
        self.reports: list[StoreReport] = []
        self._contents = JsonContents(Tables())
        self._seen: tuple[Stamp, Stamp] = (None, None)
        self._end = 0

    @property
    def tables(self) -> Tables:
        """What the files held when they were last read, and what was written since."""
        return self._contents.tables

    def is_current(self) -> bool:
        """Return whether no one else has written since the last check."""
        return self._stamps() == self._seen

    def refresh_unlocked(self) -> None:
        """Read what other processes wrote, without the lock: repeat until no one wrote meanwhile.

        Raises:
            StoreBusyError: someone wrote at every attempt.
            StoreVersionError: a newer ctxgc wrote the files.
        """
        for _ in range(_TRIES):
            self.refresh(repair=False)
            if self.is_current():
                return
        raise StoreBusyError(
            f"{self.path} was written to every time it was read", hint="call again"
        )

    def refresh(self, *, repair: bool = True) -> None:
        """Read what other processes wrote, and repair what is damaged.

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
        # What is being written right now is not yet whole, which is not damage.
        if problem is not None and (repair or self.is_current()):
            self._report(problem, repair=repair)

    @contextmanager
    def appended(self, line: bytes) -> Iterator[None]:
        """Append a line to the journal, durably; the block makes the same change to the tables.

        If it is interrupted between the two, everything is read again.
        """
        if self._seen[0] is None:
            keep_out_of_git(self.path)
            self.fold()
        if self._end == 0:
            head = _journal_header(self._contents.generation)
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
        """Rewrite the readable file and remove the journal."""
        generation = self._contents.generation + 1
        # Inodes are reused and clocks are coarse: the new file must have a later time than any before.
        seen = self._stamp(self.path)
        write_atomic(self.path, render(self.tables, generation), after=seen[1] if seen else 0)
        self._contents.generation = generation
        self._end = 0
        remove(self.journal)
        self._seen = self._stamps()

    def fold_if_due(self) -> None:
        """Fold a journal that has outgrown the file; if the disk refuses, nothing is lost."""
        size = self._seen[0][2] if self._seen[0] else 0
        if self._end > max(SMALLEST_FOLD, size):
            with suppress(StoreError):
                self.fold()

    def has_journal(self) -> bool:
        """Return whether there are commits that the readable file does not have."""
        return self._end > 0

    def _has_grown(self, stamp: Stamp) -> bool:
        seen = self._seen[1]
        if seen is None or stamp is None or self._end == 0:
            return False
        return stamp[0] == seen[0] and stamp[2] >= self._end

    def _reload(self) -> StoreReport | None:
        data, log = self._read(self.path), self._read(self.journal)
        exists = self._stamp(self.path) is not None
        self._contents = parse(self.path, data, utc_now()) if exists else JsonContents(Tables())
        self._end = 0
        problem = self._contents.report
        if log and _journal_generation(self.journal, log) >= self._contents.generation:
            problem = self._replay(log, 0) or problem
        return problem

    def _replay(self, data: bytes, start: int) -> StoreReport | None:
        done = _replay(data, self.tables, start)
        self._end = done.end
        if done.bad:
            message = f"{done.bad} commits in {self.journal} are damaged and were skipped"
            return StoreReport(kind="damaged", message=message, lost=done.bad)
        if done.torn:
            message = f"{self.journal} ends with {done.torn} bytes of an unfinished commit"
            return StoreReport(kind="torn", message=message)
        return None

    def _report(self, problem: StoreReport, *, repair: bool) -> None:
        """Note a problem; damaged files are kept next to the new one with what was saved."""
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
        elif problem.kind == "edited" and repair and self.path.stat().st_size:
            aside = set_aside(self.path)
            problem = msgspec.structs.replace(
                problem, message=f"{problem.message}; kept as {aside.name}", set_aside=str(aside)
            )
            self.fold()
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
            # A device may have no end.
            if not path.is_file() and path.exists():
                raise StoreError(
                    f"{path} is not a file",
                    hint="name a file that the store may write",
                    path=str(path),
                )
            return path.read_bytes()
        return b""


IGNORE = """\
# Conversations, as plain text. What else is in this folder (gc.json, profiles) can be shared.
/stash.json*
/agents/
/undo/
/.gitignore
"""


def keep_out_of_git(path: Path) -> None:
    """Put an ignore file next to a store in a `.ctxgc` folder, unless the folder has one."""
    ignore = path.with_name(".gitignore")
    if path.parent.name == ".ctxgc" and not ignore.exists():
        write_atomic(ignore, IGNORE.encode())


# -- The journal: a line per commit, of a CRC-32 and a JSON record


class _Replayed(msgspec.Struct):
    """How far a journal could be read.

    `end` is the end of its last whole line, `bad` the number of damaged lines, and `torn` the number
    of bytes after the end, left by a commit that never returned.
    """

    end: int
    bad: int = 0
    torn: int = 0


def _journal_header(generation: int) -> bytes:
    """Return the first line of a journal."""
    return _journal_line(encode({"journal": _JOURNAL_VERSION, "generation": generation}))


def _commit_line(
    session_id: str, revision: int, now: datetime, writes: Sequence[Prepared]
) -> bytes:
    """Return the line of a commit."""
    head = encode({"session": session_id, "revision": revision, "at": now.isoformat()})
    body = ",".join(_journal_write(write) for write in writes)
    return _journal_line(f'{head[:-1]},"writes":[{body}]}}')


def _drop_line(session_id: str) -> bytes:
    """Return the line that deletes a session."""
    return _journal_line(encode({"session": session_id, "dropped": True}))


def _journal_generation(path: Path, data: bytes) -> int:
    """Return which generation of the readable file a journal continues.

    A journal that does not say is damaged; it counts as the newest, so that its lines are read.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    record = _record(data.partition(b"\n")[0]) or {}
    if record.get("journal", _JOURNAL_VERSION) > _JOURNAL_VERSION:
        raise too_new(path, record["journal"], _JOURNAL_VERSION)
    return int(record.get("generation", sys.maxsize))


def _replay(data: bytes, tables: Tables, start: int) -> _Replayed:
    """Apply the commits of a journal from an offset on."""
    *lines, rest = data[start:].split(b"\n")
    done = _Replayed(len(data) - len(rest), torn=len(rest))
    for line in lines:
        record = _record(line)
        if record is None:
            done.bad += 1
        else:
            _apply(record, tables)
    return done


def _apply(record: dict[str, Any], tables: Tables) -> None:
    session_id = record.get("session")
    if session_id is None:
        return
    if record.get("dropped"):
        tables.sessions.pop(session_id, None)
        return
    now = datetime.fromisoformat(record["at"])
    writes = [_as_prepared(*write) for write in record["writes"]]
    tables.apply(session_id, writes, now)
    tables.table(session_id, now).revision = record["revision"]


def _as_prepared(
    collection: CollectionName, key: str, doc: dict[str, Any] | None = None
) -> Prepared:
    return Prepared(collection, key, None if doc is None else encode(doc), doc)


def _journal_write(write: Prepared) -> str:
    name = encode({"": [write.collection, write.key]})[5:-2]
    return f"[{name}]" if write.text is None else f"[{name},{write.text}]"


def _journal_line(body: str) -> bytes:
    data = body.encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _record(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.partition(b" ")
    try:
        if len(checksum) != 8 or int(checksum, 16) != zlib.crc32(body):
            return None
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
