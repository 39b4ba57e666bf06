"""The files of the json store: the readable one, and the journal that continues it.

A commit is one line at the end of the journal. When the journal has grown it is folded: the readable
file is replaced by one of the next generation, and the journal of the old generation is void from
that moment, whether or not it could be removed. Whoever calls holds the lock between processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.stores import journal
from ctxgc.stores.base import StoreReport
from ctxgc.stores.files import append_durable, os_errors, remove, set_aside, write_atomic
from ctxgc.stores.json_file import Contents, render
from ctxgc.stores.json_salvage import parse
from ctxgc.stores.tables import Tables, now

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
