"""What media weighs and how it is named where text stands for it.

Providers bill images by area. Where the size stands in the first bytes of the file it is read from
there; otherwise the provider's usual upper bound counts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import struct
from typing import Any

from ctxgc.core.message import Part

MOST_OF_AN_IMAGE = 4_784
_LEAST_OF_A_FILE = 1_600
_BYTES_PER_TOKEN = {"audio": 400, "document": 20, "file": 20}
_BYTES_PER_TOKEN_OF_TEXT = 4
_HEAD = 64 * 1024
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[^,]{0,200},")


def media_part(kind: str, payload: Any, path: tuple[str | int, ...], media_type: str = "") -> Part:
    """Return the part for a media block; `payload` is base64 data, a data URL, a URL or a file id."""
    data, media_type = _split(payload, media_type)
    label, tokens = describe(kind, data, media_type)
    return Part(kind="media", text=label, path=path, media_tokens=tokens)


def describe(kind: str, payload: str, media_type: str = "") -> tuple[str, int]:
    """Return a short name for media, different for different content, and its tokens."""
    digest = hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    name = f"[{kind} {media_type} {digest}]" if media_type else f"[{kind} {digest}]"
    if kind == "image":
        return name, image_tokens(payload)
    size = len(payload) * 3 // 4
    each = (
        _BYTES_PER_TOKEN_OF_TEXT
        if media_type.startswith("text/")
        else _BYTES_PER_TOKEN.get(kind, 20)
    )
    return name, max(_LEAST_OF_A_FILE, size // each)


def image_tokens(payload: str) -> int:
    """Return the most that an image costs at any provider: by area, or by tiles of 512 pixels."""
    size = _size(_head(payload))
    if size is None or not all(size):
        return MOST_OF_AN_IMAGE
    width, height = size
    shrink = min(1.0, 2048 / max(size), 768 / min(size))
    tiles = math.ceil(round(width * shrink, 3) / 512) * math.ceil(round(height * shrink, 3) / 512)
    area = min(MOST_OF_AN_IMAGE, math.ceil(width * height / 750))
    return max(area, 85 + 170 * tiles)


def _split(payload: Any, media_type: str) -> tuple[str, str]:
    text = payload if isinstance(payload, str) else repr(payload)
    match = _DATA_URL.match(text)
    return (text[match.end() :], match[1] or media_type) if match else (text, media_type)


def _head(payload: str) -> bytes:
    try:
        return base64.b64decode(payload[: _HEAD // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _size(head: bytes) -> tuple[int, int] | None:
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return width, height
    if head[:4] == b"GIF8" and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return width, height
    return _jpeg_size(head) if head[:2] == b"\xff\xd8" else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], struct.unpack(">H", head[place + 2 : place + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[place + 5 : place + 9])
            return width, height
        place += 2 + length
    return None
