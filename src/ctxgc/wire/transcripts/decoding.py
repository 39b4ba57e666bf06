"""Decoding: one line of a transcript as an object, as far as its bytes allow it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_fast = msgspec.json.Decoder()


def decode(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the object of a line and what is wrong with its bytes; no object if it cannot be read."""
    try:
        found = _fast.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _slowly(raw)
    return (found, "") if isinstance(found, dict) else (None, "no JSON object")


def _slowly(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """Read what only Python's own reader takes (lone surrogates), then what had to be mended first."""
    for text, trouble in _readings(raw):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return (found, trouble) if isinstance(found, dict) else (None, "no JSON object")
    return None, _why(raw)


def _readings(raw: bytes) -> list[tuple[str, str]]:
    text = raw.decode("utf-8", "replace")
    is_utf8 = "�" not in text or _is_utf8(raw)
    readings = [(text, "" if is_utf8 else "not UTF-8: the wrong bytes were replaced")]
    if b"\0" in raw:
        readings.append((text.replace("\0", ""), "holds NUL bytes, which were left out"))
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
    return "no JSON"
