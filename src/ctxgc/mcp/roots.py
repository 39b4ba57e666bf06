"""Allowed roots: the directories that files may be read from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ctxgc.errors import InputError


class AllowedRoots:
    """Tells which files may be read: those below one of these directories, symbolic links resolved."""

    def __init__(self, roots: Iterable[str | Path]) -> None:
        self.roots = tuple(Path(root).expanduser().resolve() for root in roots)

    def holds(self, path: Path) -> bool:
        """Tell whether a path is a plain file below one of the roots."""
        try:
            self.checked(str(path))
        except InputError:
            return False
        return True

    def checked(self, path: str) -> Path:
        """Return the real path of a plain file below one of the roots.

        Raises:
            InputError: it is elsewhere, missing, or no plain file.
        """
        try:
            real = Path(path).expanduser().resolve(strict=True)
            plain = stat.S_ISREG(real.stat().st_mode)
        except (OSError, ValueError, RuntimeError):
            raise self._refused(path, "cannot be read") from None
        if not any(real.is_relative_to(root) for root in self.roots):
            raise self._refused(path, "is outside the allowed roots")
        if not plain:
            raise self._refused(path, "is no plain file")
        return real

    def _refused(self, path: str, why: str) -> InputError:
        allowed = ", ".join(str(root) for root in self.roots)
        return InputError(
            f"{path[:200]!r} {why}",
            hint=f"files below {allowed} can be read; the server's --root adds others",
            field="path",
        )


def read_from(path: Path, offset: int, most: int) -> tuple[bytes, int]:
    """Return bytes of a plain file from an offset, at most so many, and the size of the file.

    The last name of the path is not followed if it has become a symbolic link since it was checked.

    Raises:
        InputError: the file cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.open(path, flags)
        try:
            return os.pread(file, most, offset), os.fstat(file).st_size
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"cannot read {path.name}: {error.strerror}", hint="check the path", field="path"
        ) from None
