"""A disk that can lose power: it records what a program did to files, and rebuilds what may be left.

What was written to a file since its last sync may be there or not, each piece by itself. Names that
were made, moved or removed since the last sync of the directory may be there up to any one of them,
in their order. What was synced is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

Event = tuple[Any, ...]


class Recorder:
    """Listens to the calls of `os` that change one directory; `note` adds marks of the test's own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.events: list[Event] = []
        self._folder = folder
        self._files: dict[int, str | int] = {}
        self._inodes: dict[str, int] = {}
        self._last_inode = 0
        for name in ("open", "close", "pwrite", "ftruncate", "fsync", "replace", "unlink", "link"):
            patch.setattr(os, name, self._listening(name, getattr(os, name)))

    def note(self, *event: Any) -> None:
        """Remember that something happened now."""
        self.events.append(event)

    def _listening(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def listened(*args: Any, **options: Any) -> Any:
            result = call(*args, **options)
            getattr(self, f"_{name}")(result, *args)
            return result

        return listened

    def _name(self, path: Any) -> str | None:
        where = Path(os.fsdecode(path))
        return where.name if where.parent == self._folder else None

    def _open(self, file: int, path: Any, flags: int, *_: Any) -> None:
        if Path(os.fsdecode(path)) == self._folder:
            self._files[file] = "folder"
        elif name := self._name(path):
            if name not in self._inodes:
                self._last_inode += 1
                self._inodes[name] = self._last_inode
                self.note("name", name, self._last_inode)
            if flags & os.O_TRUNC:
                self.note("truncate", self._inodes[name], 0)
            self._files[file] = self._inodes[name]

    def _close(self, _: None, file: int) -> None:
        self._files.pop(file, None)

    def _pwrite(self, written: int, file: int, data: Any, offset: int) -> None:
        if file in self._files:
            self.note("write", self._files[file], offset, bytes(data[:written]))

    def _ftruncate(self, _: None, file: int, size: int) -> None:
        if file in self._files:
            self.note("truncate", self._files[file], size)

    def _fsync(self, _: None, file: int) -> None:
        if file in self._files:
            self.note("sync", self._files[file])

    def _replace(self, _: None, old: Any, new: Any) -> None:
        self._inodes[str(self._name(new))] = self._inodes[str(self._name(old))]
        del self._inodes[str(self._name(old))]
        self.note("move", self._name(old), self._name(new))

    def _unlink(self, _: None, path: Any, *__: Any) -> None:
        if name := self._name(path):
            self._inodes.pop(name, None)
            self.note("remove", name)

    def _link(self, _: None, old: Any, new: Any, **__: Any) -> None:
        self._inodes[str(self._name(new))] = self._inodes[str(self._name(old))]
        self.note("name", self._name(new), self._inodes[str(self._name(old))])


def recording_disk(apsw: Any) -> Any:
    """Return a file system for SQLite that writes down the same events in `events`.

    The file with the suffix `-shm` is memory to SQLite and does not outlive it.
    """
    events: list[Event] = []
    inodes: dict[str, int] = {}

    class File(apsw.VFSFile):  # type: ignore[misc]
        def __init__(self, path: Any, flags: list[int]) -> None:
            super().__init__("", path, flags)
            name = Path(path.filename() if hasattr(path, "filename") else path).name
            if name not in inodes:
                inodes[name] = len(events) + 1
                events.extend([("name", name, inodes[name]), ("sync", "folder")])
            self.inode = inodes[name]

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
            events.append(("write", self.inode, offset, bytes(data)))
            super().xWrite(data, offset)

        def xTruncate(self, size: int) -> None:  # noqa: N802
            events.append(("truncate", self.inode, size))
            super().xTruncate(size)

        def xSync(self, flags: int) -> None:  # noqa: N802
            events.append(("sync", self.inode))
            super().xSync(flags)

    class Disk(apsw.VFS):  # type: ignore[misc]
        def __init__(self) -> None:
            self.name, self.events = f"recording-{id(events)}", events
            super().__init__(self.name, "")

        def xOpen(self, path: Any, flags: list[int]) -> Any:  # noqa: N802
            return File(path, flags)

        def xDelete(self, path: str, sync: bool) -> None:  # noqa: N802
            super().xDelete(path, sync)
            inodes.pop(Path(path).name, None)
            events.append(("remove", Path(path).name))

    return Disk()


def after_power_cut(events: list[Event], random: Random) -> dict[str, bytes]:
    """Return files that may be left if the power went off after these events."""
    contents: dict[int, bytes] = {}
    waiting: dict[int, list[Event]] = {}
    names: dict[str, int] = {}
    moves: list[Event] = []
    for event in events:
        kind, subject = event[0], event[1]
        if kind in {"write", "truncate"}:
            waiting.setdefault(subject, []).append(event)
        elif kind in {"name", "move", "remove"}:
            moves.append(event)
        elif event == ("sync", "folder"):
            _move(names, moves)
            moves = []
        elif kind == "sync":
            contents[subject] = _written(contents.get(subject, b""), waiting.pop(subject, []))
    _move(names, moves[: random.randint(0, len(moves))])
    for inode, pieces in waiting.items():
        kept = [piece for piece in pieces if random.random() < 0.5]
        contents[inode] = _written(
            contents.get(inode, b""), [_torn(piece, random) for piece in kept]
        )
    return {name: contents.get(inode, b"") for name, inode in names.items()}


def _move(names: dict[str, int], moves: list[Event]) -> None:
    for kind, name, *rest in moves:
        if kind == "name":
            names[name] = rest[0]
        elif kind == "remove":
            names.pop(name, None)
        else:
            names[rest[0]] = names.pop(name)


def _written(data: bytes, pieces: list[Event]) -> bytes:
    image = bytearray(data)
    for kind, _, place, *rest in pieces:
        if len(image) < place:
            image.extend(bytes(place - len(image)))
        if kind == "truncate":
            del image[place:]
        else:
            image[place : place + len(rest[0])] = rest[0]
    return bytes(image)


def _torn(piece: Event, random: Random) -> Event:
    """Return a write of which perhaps only the first part arrived."""
    if piece[0] == "truncate" or random.random() < 0.5:
        return piece
    kind, inode, offset, data = piece
    return kind, inode, offset, data[: random.randint(0, len(data))]
