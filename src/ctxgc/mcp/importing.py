"""Importing: the transcript of a coding agent comes in, and later only what was added to it."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.mcp.context import Context
from ctxgc.mcp.intake import segments_of
from ctxgc.mcp.roots import read_from
from ctxgc.tokens import TokenCounter
from ctxgc.wire.transcripts import read_lines

PIECE = 1 << 20
LONGEST_LINE = 64 << 20
HEAD = 256


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a transcript: its segments, and how far the file was read with it.

    `is_last`: nothing more can be read now; a line that its writer has not finished may follow.
    """

    segments: list[ContextSegment]
    offset: int
    size: int
    passed_over: int
    broken: int
    is_last: bool


def next_piece(context: Context, counter: TokenCounter, path: Path) -> Piece:
    """Return what comes after the last piece that was read of a file.

    A file that was replaced or cut is read from its beginning: what is known does not come in twice.

    Raises:
        InputError: it cannot be read, or a line of it is too long.
    """
    offset = _offset(context, path)
    want = PIECE
    while True:
        data, size = read_from(path, offset, want)
        is_end = offset + len(data) >= size
        reading = read_lines(data, offset=offset, is_end=is_end)
        if reading.used or is_end:
            break
        if want >= LONGEST_LINE:
            raise InputError(
                f"a line of {path.name} is longer than {LONGEST_LINE} bytes",
                hint="this is no transcript",
                field="path",
            )
        want *= 4
    messages = ((entry.message(), entry.written_at) for entry in reading.entries)
    sound = [(message, at) for message, at in messages if message is not None]
    return Piece(
        segments=segments_of(context, counter, sound),
        offset=offset + reading.used,
        size=size,
        passed_over=reading.passed_over,
        broken=reading.broken + len(reading.entries) - len(sound),
        is_last=is_end,
    )


def note_offset(context: Context, path: Path, offset: int) -> None:
    """Remember how far a file was read."""
    head, _ = read_from(path, 0, min(HEAD, offset))
    imports: dict[str, dict[str, Any]] = dict(context.saved.imports)
    imports[_key(path)] = {"path": str(path), "offset": offset, "head": _digest(head)}
    context.saved.imports = imports


def _offset(context: Context, path: Path) -> int:
    known = context.saved.imports.get(_key(path))
    if known is None:
        return 0
    head, size = read_from(path, 0, min(HEAD, known["offset"]))
    return int(known["offset"]) if size >= known["offset"] and known["head"] == _digest(head) else 0


def _key(path: Path) -> str:
    return _digest(str(path).encode("utf-8", "surrogateescape"))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()
