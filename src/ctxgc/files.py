"""Files written safely: atomic replacement, durable appends, logs, and locks between processes.

What is written is on the disk when the call returns, or not there at all; files are 0600, new
directories 0700; links are not followed. Paths come from the configuration, never from ids or texts.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ctxgc.errors import StoreBusyError, StoreError

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and try again",
    errno.EDQUOT: "the quota is used up: free some space and try again",
    errno.EFBIG: "the file would be larger than this process may write",
    errno.EROFS: "the file system is read-only: mount it writable, or choose another path",
    errno.EACCES: "this user may not write there: correct the permissions, or choose another path",
    errno.EPERM: "this user may not write there: correct the permissions, or choose another path",
    errno.EIO: "the disk failed: check the system log first",
    errno.EMFILE: "too many files are open in this process",
    errno.ENFILE: "too many files are open on this machine",
    errno.ELOOP: "this is a symbolic link: name the file itself",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EISDIR: "this is a directory: name a file",
}


@contextmanager
def os_errors(path: Path, doing: str) -> Iterator[None]:
    """Turn an error of the operating system into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise StoreError(
            f"cannot {doing} {path}: {error.strerror or error}",
            hint=_HINTS.get(error.errno or 0, ""),
            path=str(path),
            errno=name,
        ) from error


def ensure_directory(path: Path) -> None:
    """Create a directory and its missing parents, for this user only."""
    with os_errors(path, "create the directory"):
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            with suppress(FileExistsError):
                folder.mkdir(mode=DIRECTORY_MODE)
                folder.chmod(DIRECTORY_MODE)
            sync_directory(folder.parent)


def write_atomic(
    path: Path, data: bytes, *, after: int = 0, check: Callable[[], object] | None = None
) -> None:
    """Replace a file: after a crash it is the old or the new one. Its time is later than `after`.

    `check` is called when the new file is on the disk, right before it takes the place of the old one; what
    it raises leaves the old one as it is.

    Raises:
        StoreError: it could not be written, or it is a device or a pipe.
    """
    ensure_directory(path.parent)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(
            f"cannot write {path}: it is not a regular file", hint="name a file", path=str(path)
        )
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    with os_errors(path, "write"):
        try:
            _write_new(temporary, data, after)
            if check is not None:
                check()
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)


def create_private(path: Path, data: bytes = b"") -> bool:
    """Create a file for this user only, unless there is one; return whether it was created."""
    ensure_directory(path.parent)
    with os_errors(path, "create"), suppress(FileExistsError):
        _write_new(path, data)
        sync_directory(path.parent)
        return True
    return False


def replace(new: Path, path: Path) -> None:
    """Replace a file by another, durably."""
    with os_errors(path, "replace"):
        new.replace(path)
        sync_directory(path.parent)


def append_durable(path: Path, data: bytes, size: int) -> None:
    """Write data after the first `size` bytes of a file and drop the rest; on failure keep those bytes."""
    with os_errors(path, "append to"):
        file = os.open(path, os.O_WRONLY | _NO_FOLLOW)
        try:
            if os.fstat(file).st_size != size:
                os.ftruncate(file, size)
            _write_all(file, data, size)
            os.fsync(file)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(file, size)
            raise
        finally:
            os.close(file)


def append_log(path: Path, data: bytes, most: int) -> None:
    """Append a line to a log; one of `most` bytes is renamed to `NAME.1` first.

    A crash may lose its last lines: it is written without waiting for the disk.
    """
    ensure_directory(path.parent)
    with os_errors(path, "append to"):
        if _is_full(path, most):
            # Without the lock, leave it to its holder: two renames would lose the full log.
            with suppress(StoreBusyError), FileLock(path.with_name(f"{path.name}.lock"), 0):
                if _is_full(path, most):
                    path.replace(path.with_name(f"{path.name}.1"))
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_FOLLOW, FILE_MODE)
        try:
            os.write(file, data)
        finally:
            os.close(file)


def remove(path: Path) -> None:
    """Delete a file, durably, if it exists."""
    with os_errors(path, "remove"), suppress(FileNotFoundError):
        path.unlink()
        sync_directory(path.parent)


def set_aside(path: Path) -> Path:
    """Keep a copy of a damaged file as the first free `NAME.damaged-N`, and return that path."""
    with os_errors(path, "set aside"):
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        try:
            aside.hardlink_to(path)
        except OSError:  # not every file system has links
            write_atomic(aside, path.read_bytes())
        sync_directory(path.parent)
    return aside


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    folder = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FileLock:
    """A lock between processes, and between threads of one process, on a file next to the data."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._file = -1

    def acquire(self, *, shared: bool = False) -> None:
        """Take the lock.

        Raises:
            StoreBusyError: it was held until the timeout.
        """
        import fcntl  # noqa: PLC0415 (not on every system)

        ensure_directory(self.path.parent)
        with os_errors(self.path, "lock"):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, FILE_MODE)
        try:
            self._wait(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        """Release the lock."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    __del__ = release

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _wait(self, file: int, how: int) -> None:
        import fcntl  # noqa: PLC0415

        deadline = time.monotonic() + self.timeout
        while True:
            try:
                with os_errors(self.path, "lock"):
                    return fcntl.flock(file, how)
            except StoreError as error:
                if error.details["errno"] not in {"EAGAIN", "EWOULDBLOCK"}:
                    raise
            if time.monotonic() >= deadline:
                raise StoreBusyError(
                    f"another process holds {self.path}",
                    hint=f"it was locked for {self.timeout:g} s: try again, or end that process",
                    path=str(self.path),
                )
            time.sleep(0.002)


def _is_full(path: Path, most: int) -> bool:
    return os.path.lexists(path) and path.lstat().st_size >= most


def _write_new(path: Path, data: bytes, after: int = 0) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, FILE_MODE)
    try:
        os.fchmod(file, FILE_MODE)
        _write_all(file, data, 0)
        if os.fstat(file).st_mtime_ns <= after:
            os.utime(file, ns=(after + 1, after + 1))
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written
