"""Stillness: whether anybody is writing a file, as far as a machine can tell."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ctxgc.errors import TranscriptBusyError

QUIET_SECONDS = 5.0
"""An agent that is at work writes more often than this."""
_PAUSE = 0.2
_WRITES = os.O_WRONLY | os.O_RDWR


class Look(NamedTuple):
    """What a file looked like: size, time of the last change, and which file it is."""

    size: int
    changed: int
    inode: int


def look(path: Path) -> Look:
    """Return what a file looks like now."""
    found = path.stat()
    return Look(found.st_size, found.st_mtime_ns, found.st_ino)


def check_still(path: Path, *, quiet_seconds: float = QUIET_SECONDS) -> Look:
    """Make sure that nobody is writing a file, and return what it looks like.

    Raises:
        TranscriptBusyError: it changed a moment ago or changes now, or a process holds it open to write.
    """
    first = look(path)
    age = time.time() - first.changed / 1e9
    if 0 <= age < quiet_seconds:
        raise _busy(path, f"it was written {age:.0f} s ago")
    writer = next(writers(path), None)
    if writer is not None:
        raise _busy(path, f"process {writer} has it open")
    time.sleep(_PAUSE)
    check_unchanged(path, first)
    return first


def check_unchanged(path: Path, before: Look) -> None:
    """Make sure that a file is what it was.

    Raises:
        TranscriptBusyError: it is not.
    """
    if look(path) != before:
        raise _busy(path, "it is changing now")


def writers(path: Path) -> Iterator[int]:
    """Yield the processes that have a file open to write, where the system shows them."""
    wanted = path.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is not ours to look at
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
        hint="end the agent first, or write a copy with -o",
        path=str(path),
    )
