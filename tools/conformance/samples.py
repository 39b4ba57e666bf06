"""The smallest image and the smallest sound."""

from __future__ import annotations

import struct
import zlib


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_HEADER = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)

PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", _HEADER)
    + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)
"""One red pixel."""

_FORMAT = struct.pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8)

WAV = (
    b"RIFF" + struct.pack("<I", 37) + b"WAVEfmt " + struct.pack("<I", 16) + _FORMAT
    + b"data" + struct.pack("<I", 1) + b"\x80"
)  # fmt: skip
"""One sample of silence."""
