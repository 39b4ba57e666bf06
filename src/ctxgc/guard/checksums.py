"""The files that the work depends on: their checksums in a checkpoint, and what changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from ctxgc.guard.checkpoint import Checkpoint

NO_FILE = ""
"""What a checkpoint says of a file that was not there, or could not be read."""

DifferenceKind = Literal["missing", "changed", "added", "unreadable"]


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not as the checkpoint knew it.

    `missing`: it is gone. `changed`: its bytes differ. `added`: it was not there, or not readable.
    `unreadable`: it is there, but cannot be read now.
    """

    path: str
    kind: DifferenceKind
    expected: str
    found: str


def checksum_files(paths: Iterable[str | Path], root: str | Path = ".") -> dict[str, str]:
    """Return the SHA-256 of each file by its path as given; relative ones stand below `root`.

    A file that is not there, or cannot be read, has the checksum `""`: a checkpoint is made anyway.
    """
    return {str(path): _checksum(Path(root) / path) or NO_FILE for path in paths}


def compare_files(checkpoint: Checkpoint, root: str | Path = ".") -> list[FileDifference]:
    """Return how the files differ now from what a checkpoint knew, in its order."""
    compared = (
        _compare(path, expected, Path(root) / path)
        for path, expected in checkpoint.file_checksums.items()
    )
    return [difference for difference in compared if difference is not None]


def _compare(path: str, expected: str, file: Path) -> FileDifference | None:
    found = _checksum(file)
    if found == expected or (expected == NO_FILE and not found):
        return None
    kind: DifferenceKind = "added" if expected == NO_FILE else "changed"
    if not found:
        kind = "missing" if found is None else "unreadable"
    return FileDifference(path=path, kind=kind, expected=expected, found=found or NO_FILE)


def _checksum(file: Path) -> str | None:
    """The checksum of a file; None if there is none, empty if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):  # ValueError: no path can have this name
        return NO_FILE
