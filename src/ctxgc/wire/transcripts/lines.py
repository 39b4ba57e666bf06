"""Lines: a file as numbered lines, whatever its compression or encoding, in bounded memory."""

from __future__ import annotations

import codecs
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import msgspec

from ctxgc.errors import TranscriptError
from ctxgc.wire.transcripts.items import Damage

LONGEST_LINE = 64 << 20
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_GZIP_BITS = 31
_ZSTD = b"\x28\xb5\x2f\xfd"
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_Bytes: TypeAlias = io.BufferedIOBase | io.RawIOBase
BROKEN = (OSError, EOFError, zlib.error)
"""What reading a file raises if its end is missing or its bytes are wrong."""

Line = tuple[int, int, bytes]
"""Number from 1, offset of its first byte in the unpacked file, and its bytes."""

_fast = msgspec.json.Decoder()


def decode_line(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the object of a line and what is wrong with its bytes; no object if it cannot be read."""
    try:
        found = _fast.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _slowly(raw)
    return (found, "") if isinstance(found, dict) else (None, "not a JSON object")


def _slowly(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """Read what only Python's own reader accepts (lone surrogates), then what must be repaired first."""
    for text, trouble in _readings(raw):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return (found, trouble) if isinstance(found, dict) else (None, "not a JSON object")
    return None, _why(raw)


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object of a line that is exactly JSON; None for anything else."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _readings(raw: bytes) -> list[tuple[str, str]]:
    text = raw.decode("utf-8", "replace")
    is_utf8 = "�" not in text or _is_utf8(raw)
    readings = [(text, "" if is_utf8 else "not UTF-8: the invalid bytes were replaced")]
    if b"\0" in raw:
        readings.append((text.replace("\0", ""), "contained NUL bytes, which were removed"))
    return readings


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _why(raw: bytes) -> str:
    if not raw.strip(b"\0 \t\r\n"):
        return "only NUL bytes"
    if not raw.endswith(b"\n") and raw.lstrip(b"\0 \t")[:1] == b"{":
        return "cut off: its writer has not finished it, or the file was truncated"
    return "not JSON"


@contextmanager
def unpacked(
    path: Path, progress: Callable[[int], None] | None = None
) -> Iterator[io.BufferedReader]:
    """Open a file as UTF-8 bytes; `progress` is called with how many bytes of the file itself were read.

    Raises:
        TranscriptError: it cannot be opened, or its compression is not supported.
    """
    try:
        with path.open("rb") as file:
            source: _Bytes = file if progress is None else _ProgressFile(file, progress)
            yield _decoded(_inflated(file, source, path))
    except BROKEN as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> TranscriptError:
    """Return the error for a file that cannot be read."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return TranscriptError(
        f"{path} cannot be read: {said}",
        hint="name a transcript, or see `ctxgc sessions` for those found here",
        path=str(path),
    )


def numbered(
    file: IO[bytes], damage: Callable[[Damage], None], longest: int = LONGEST_LINE
) -> Iterator[Line]:
    """Yield the lines of a file that are not blank; one that is too long is reported and skipped."""
    number, offset = 0, 0
    while raw := _next(file, longest, number + 1, damage):
        number += 1
        if len(raw) > longest and not raw.endswith(b"\n"):
            size = len(raw) + _skip_line(file)
            damage(Damage(line=number, what=f"longer than {longest} bytes"))
            offset += size
            continue
        if raw.strip():
            yield number, offset, raw
        offset += len(raw)


def _next(file: IO[bytes], longest: int, number: int, damage: Callable[[Damage], None]) -> bytes:
    try:
        return file.readline(longest + 1)
    except BROKEN as error:
        # A compressed file that was cut off: everything before the cut has been read.
        damage(Damage(line=number, what=f"the compressed file ends or breaks here: {error}"))
        return b""


def _skip_line(file: IO[bytes]) -> int:
    size = 0
    while piece := file.readline(_CHUNK):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _inflated(file: IO[bytes], source: _Bytes, path: Path) -> _Bytes:
    head = file.read(4)
    file.seek(0)
    if head == _ZSTD:
        raise TranscriptError(
            f"{path} is compressed with zstd",
            hint=f"decompress it first: zstd -d {path}",
            path=str(path),
        )
    if head[:2] == _GZIP:
        return _Inflated(source)
    return source


def _decoded(file: _Bytes) -> io.BufferedReader:
    buffered: io.BufferedReader = io.BufferedReader(file, _CHUNK)
    head = buffered.peek(3)[:3]
    wide = _WIDE.get(head[:2])
    if head == codecs.BOM_UTF8:
        buffered.read(3)
    if wide is None:
        return buffered
    buffered.read(2)
    return io.BufferedReader(_Narrow(buffered, wide), _CHUNK)


class _Narrow(io.RawIOBase):
    """A UTF-16 file, read as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left:
            raw = self._file.read(_CHUNK)
            self._left = self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")
            if not raw:
                break
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


class _Inflated(io.RawIOBase):
    """A gzip file, decompressed up to the point where it breaks; only that point is an error."""

    def __init__(self, file: _Bytes) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(_GZIP_BITS)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._left and not self._is_over():
            self._left = self._inflate.decompress(self._next(), _CHUNK)
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def _next(self) -> bytes:
        if self._inflate.eof:
            rest = self._inflate.unused_data
            self._inflate = zlib.decompressobj(_GZIP_BITS)
            return rest
        raw = self._inflate.unconsumed_tail or self._file.read(_CHUNK) or b""
        if not raw:
            raise EOFError("it was cut off")
        return raw

    def _is_over(self) -> bool:
        """Return whether the last member has ended and no other follows."""
        if not self._inflate.eof:
            return False
        if self._inflate.unused_data.lstrip(b"\0"):
            return False
        more = (self._file.read(_CHUNK) or b"").lstrip(b"\0")
        if more:
            self._inflate = zlib.decompressobj(_GZIP_BITS)
            self._left = self._inflate.decompress(more, _CHUNK)
        return not more


class _ProgressFile(io.RawIOBase):
    """A file that reports how far it was read."""

    def __init__(self, file: IO[bytes], progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = self._file.readinto(buffer)  # type: ignore[attr-defined] # files from open() have it
        self._progress(self._file.tell())
        return int(size or 0)
