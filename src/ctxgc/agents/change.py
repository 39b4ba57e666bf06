"""A change of one file of others: what it holds before and after, written so that all or none are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.stores.files import os_errors, remove, write_atomic


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def verb(self) -> str:
        """What happens to the file, in one word."""
        if self.before is None:
            return "create"
        return "remove" if self.after is None else "change"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = (_lines(data) for data in (self.before, self.after))
        return "\n".join(unified_diff(old, new, str(self.path), str(self.path), lineterm="", n=1))


def read_file(path: Path) -> bytes | None:
    """Return what a file holds; None if it is not there.

    Raises:
        StoreError: it cannot be read.
    """
    with os_errors(path, "read"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def apply_changes(changes: Sequence[Change]) -> None:
    """Make all changes; if one fails, those made before are taken back.

    Raises:
        StoreBusyError: the agent or somebody else changed a file meanwhile.
        StoreError: a file cannot be written.
    """
    done: list[Change] = []
    try:
        for change in changes:
            check_unchanged([change])
            done.append(change)
            _write(change.path, change.after)
    except StoreError:
        for change in done:
            with suppress(StoreError):
                _write(change.path, change.before)
        raise


def check_unchanged(changes: Sequence[Change]) -> None:
    """Make sure that files are what they were when the changes were made up.

    Raises:
        StoreBusyError: one of them is not.
    """
    for change in changes:
        if read_file(change.path) != change.before:
            raise StoreBusyError(
                f"{change.path} was changed by somebody else meanwhile",
                hint="call again; nothing was changed",
                path=str(change.path),
            )


def _write(path: Path, data: bytes | None) -> None:
    """Write a file in place of another, through a link and with the same permissions."""
    real = path.resolve()
    if data is None:
        remove(real)
        return
    mode = real.stat().st_mode & 0o777 if real.exists() else None
    write_atomic(real, data)
    if mode is not None:
        with os_errors(real, "set the permissions of"):
            real.chmod(mode)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()
