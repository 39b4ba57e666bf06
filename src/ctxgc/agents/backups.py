"""A transcript changed in place, and the way back to its exact bytes.

They are in `.ctxgc/undo` next to the transcript: the original, and a receipt of the change.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxgc.errors import InputError, StoreError, TranscriptBusyError
from ctxgc.files import create_private, os_errors, remove, write_atomic

# -- Whether a file is being written


QUIET_SECONDS = 5.0
"""A working agent writes more often than this."""
_PAUSE = 0.2
_WRITES = os.O_WRONLY | os.O_RDWR


class FileState(NamedTuple):
    """The state of a file: size, time of the last change, and inode."""

    size: int
    changed: int
    inode: int


def file_state(path: Path) -> FileState:
    """Return the state of a file now."""
    found = path.stat()
    return FileState(found.st_size, found.st_mtime_ns, found.st_ino)


def check_still(path: Path, *, quiet_seconds: float = QUIET_SECONDS) -> FileState:
    """Return the state of a file that no process is writing.

    Raises:
        TranscriptBusyError: it changed a moment ago or changes now, or a process has it open for writing.
    """
    first = file_state(path)
    age = time.time() - first.changed / 1e9
    if 0 <= age < quiet_seconds:
        raise _busy(path, f"it was written {age:.0f} s ago")
    writer = next(writers(path), None)
    if writer is not None:
        raise _busy(path, f"process {writer} has it open")
    time.sleep(_PAUSE)
    check_unchanged(path, first)
    return first


def check_unchanged(path: Path, before: FileState) -> None:
    """Check that a file has not changed.

    Raises:
        TranscriptBusyError: it has.
    """
    if file_state(path) != before:
        raise _busy(path, "it is changing now")


def writers(path: Path) -> Iterator[int]:
    """Yield the processes that have a file open for writing, if the system shows them."""
    wanted = path.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or belongs to another user
            if any(_writes(link, wanted) for link in (process / "fd").iterdir()):
                yield int(process.name)


def _writes(link: Path, wanted: Path) -> bool:
    try:
        return link.resolve() == wanted and bool(_flags(link) & _WRITES)
    except OSError:  # it was closed meanwhile
        return False


def _flags(link: Path) -> int:
    info = link.parent.parent / "fdinfo" / link.name
    lines = info.read_text(encoding="ascii").splitlines()
    return next((int(x.split()[1], 8) for x in lines if x.startswith("flags:")), 0)


def _busy(path: Path, why: str) -> TranscriptBusyError:
    return TranscriptBusyError(
        f"{path.name} is being written: {why}",
        hint="stop the agent first, or write a copy with -o",
        path=str(path),
    )


# -- Backups


BACKUP_FOLDER = Path(".ctxgc") / "undo"
_GZIP = b"\x1f\x8b"


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript as it was before it was changed in place.

    `before` and `after` are digests of the whole file; what follows `size_after` was added since.
    """

    name: str
    number: int
    made_at: datetime
    before: str
    after: str
    size_after: int
    folder: str = ""

    @property
    def target(self) -> Path:
        """The transcript."""
        return Path(self.folder) / self.name

    @property
    def original(self) -> Path:
        """The file with the original bytes."""
        return Path(self.folder) / BACKUP_FOLDER / f"{self.name}.{self.number}"

    @property
    def receipt(self) -> Path:
        """The file that describes it."""
        return self.original.with_name(f"{self.original.name}.json")


def write_in_place(path: Path, old: bytes, new: bytes, seen: FileState) -> Backup:
    """Replace a transcript after backing up the original; refuse one that changed since.

    Args:
        path: the transcript.
        old: its bytes as read.
        new: its new content; it is gzipped if the old one was.
        seen: the state of the file before it was read.

    Raises:
        TranscriptBusyError: it is being written; nothing was changed.
        StoreError: it could not be written; the transcript is unchanged.
    """
    if old[:2] == _GZIP:
        new = gzip.compress(new, mtime=0)
    backup = Backup(
        name=path.name,
        number=_kept(path, old),
        made_at=datetime.now(UTC),
        before=_digest(old),
        after=_digest(new),
        size_after=len(new),
        folder=str(path.parent),
    )
    try:
        write_atomic(backup.receipt, msgspec.json.encode(backup))
        check_unchanged(path, seen)
        with os_errors(path, "read"):
            mode = path.stat().st_mode & 0o777
            write_atomic(path.resolve(), new, check=lambda: check_unchanged(path, seen))
            path.chmod(mode)
    except BaseException:
        _give_up(backup)
        raise
    return backup


def restore_backup(backup: Backup) -> int:
    """Restore a transcript, and return how many bytes that were added since are kept at its end.

    Raises:
        InputError: it was changed in another way since; nothing was changed.
        TranscriptBusyError: it is being written.
        StoreError: the original is missing or damaged, or cannot be written.
    """
    path = backup.target
    with os_errors(path, "read"):
        seen = check_still(path, quiet_seconds=0.0)
        now = path.read_bytes()
    with os_errors(backup.original, "read"):
        original = backup.original.read_bytes()
    if _digest(original) != backup.before:
        raise InputError(
            f"the backup {backup.original} is damaged",
            hint="nothing was changed",
            field="session",
        )
    if _digest(now[: backup.size_after]) != backup.after:
        raise InputError(
            f"{path.name} is not what ctxgc wrote: it was changed in another way since",
            hint=f"the original is {backup.original}",
            field="session",
        )
    added = now[backup.size_after :]
    if added and path.suffix not in (".jsonl", ".ndjson"):
        raise InputError(
            f"{path.name} grew since, and what was added cannot be appended to the original",
            hint=f"the original is {backup.original}",
            field="session",
        )
    check_unchanged(path, seen)
    mode = path.stat().st_mode & 0o777
    changed = original + added
    write_atomic(path.resolve(), changed, check=lambda: check_unchanged(path, seen))
    path.chmod(mode)
    remove(backup.receipt)
    remove(backup.original)
    return len(added)


def backups_of(path: Path) -> list[Backup]:
    """Return the backups of a transcript, oldest first."""
    return [known for known in _in_folder(path.parent) if known.name == path.name]


def newest_backup(folders: Iterable[Path]) -> Backup | None:
    """Return the newest backup of any transcript in these folders; None if there is none."""
    found = [known for folder in folders for known in _in_folder(folder)]
    return max(found, key=lambda known: known.made_at, default=None)


def _kept(path: Path, old: bytes) -> int:
    """Back up the bytes of a transcript under the first free number, and return it."""
    number = max((known.number for known in backups_of(path)), default=0) + 1
    while not create_private(path.parent / BACKUP_FOLDER / f"{path.name}.{number}", old):
        number += 1
    return number


def _give_up(backup: Backup) -> None:
    """Remove the backup of a file that was not changed: an undo would find it before the right one."""
    with suppress(OSError, StoreError):
        if _digest(backup.target.read_bytes()) != backup.after:
            remove(backup.receipt)
            remove(backup.original)


def _in_folder(folder: Path) -> list[Backup]:
    found = []
    for receipt in (folder / BACKUP_FOLDER).glob("*.json"):
        try:
            data = json.loads(receipt.read_bytes())
            found.append(msgspec.convert({**data, "folder": str(folder)}, Backup))
        except (OSError, ValueError, msgspec.ValidationError):
            continue
    return sorted(found, key=lambda known: known.number)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
