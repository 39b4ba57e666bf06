"""An agent's transcript read quickly: only its beginning and its end.

Lines that cannot matter are recognised by a search in their bytes, and only the others are parsed. Both
Claude Code and Codex are understood; other lines are skipped.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

Json = dict[str, Any]

_END_BYTES = 262_144
MOST_BYTES = 8 << 20
"""How much of a transcript's end is read at most, besides its first lines."""

_FIRST_BYTES = 1 << 20


class TranscriptText(NamedTuple):
    """A text in a transcript: its source (user, assistant, error, summary), and the text itself."""

    source: str
    text: str


def last_request(path: object) -> str:
    """Return the user's newest message in a transcript; empty if there is none."""
    for line in reversed(_lines(path, _END_BYTES)):
        if b'"user"' in line and b"tool_use_id" not in line:
            said = [each.text for each in _read_line(line) if each.source == "user"]
            if said:
                return said[-1]
    return ""


def read_transcript(path: object) -> list[TranscriptText]:
    """Return the texts in the first lines and at the end of a transcript, in order."""
    first, rest = _first_lines(path), _lines(path, MOST_BYTES)
    together = rest if first[:1] == rest[:1] else [*first, *rest]
    return [said for line in together if _matters(line) for said in _read_line(line)]


def last_usage(path: object) -> Json:
    """Return the usage that the newest answer in a transcript reports; empty if there is none."""
    for line in reversed(_lines(path, _END_BYTES)):
        if b'"usage"' in line and b'"input_tokens"' in line and b'"isSidechain":true' not in line:
            with suppress(ValueError, RecursionError, TypeError, KeyError):
                usage = json.loads(line)["message"]["usage"]
                if isinstance(usage, dict):
                    return usage
    return {}


def began_at(path: object) -> str:
    """Return when the first entry of a transcript was written, such as `20260102T030405`; else nothing."""
    for line in _first_lines(path)[:20]:
        with suppress(ValueError, RecursionError, TypeError, KeyError):
            said = str(json.loads(line)["timestamp"])
            return said[:19].replace("-", "").replace(":", "")
    return ""


def end_text(path: object) -> str:
    """Return the lines with tombstones at the end of a transcript, JSON escapes included."""
    from ctxgc.session import OPENING  # noqa: PLC0415 (the status line needs none of it)

    note = OPENING.encode()
    lines = _lines(path, MOST_BYTES)
    return "\n".join(line.decode("utf-8", "replace") for line in lines if note in line)


def _read_line(line: bytes) -> Iterator[TranscriptText]:
    """Yield the texts of one line."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(entry, dict) or entry.get("isMeta") or entry.get("isSidechain"):
        return
    message = entry.get("payload") if entry.get("type") == "response_item" else entry.get("message")
    if isinstance(message, dict):
        yield from _said(message, is_summary=bool(entry.get("isCompactSummary")))


def _said(message: Json, *, is_summary: bool) -> Iterator[TranscriptText]:
    from ctxgc.session import is_machine  # noqa: PLC0415 (the status line needs none of it)

    role = message.get("role")
    if role not in ("user", "assistant"):
        return
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_result" and block.get("is_error") is True:
            yield TranscriptText("error", _text(block.get("content")))
        elif isinstance(block.get("text"), str) and not is_machine(block["text"]):
            yield TranscriptText("summary" if is_summary else role, block["text"])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _matters(line: bytes) -> bool:
    if b'"tool_result"' in line or b'"tool_use_id"' in line:
        return b'"is_error":true' in line or b'"is_error": true' in line
    return b'"role"' in line and (b'"user"' in line or b'"assistant"' in line)


def _lines(path: object, most: int) -> list[bytes]:
    """Return the last lines of a file, whole ones only; none if it cannot be read."""
    size = size_of(path)
    start = max(0, size - most)
    lines = _piece(path, start, most).split(b"\n") if size else []
    return lines[1:] if start else lines


def _first_lines(path: object) -> list[bytes]:
    found = _piece(path, 0, _FIRST_BYTES).split(b"\n") if size_of(path) else []
    return found[:-1] if len(found) > 1 else found


def size_of(path: object) -> int:
    """Return the size of a transcript; 0 for what is not a file, so that a pipe never blocks."""
    try:
        found = os.stat(path if isinstance(path, str) else "")  # noqa: PTH116 (no pathlib here)
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _piece(path: object, start: int, most: int) -> bytes:
    try:
        with open(str(path), "rb") as file:  # noqa: PTH123
            file.seek(start)
            return file.read(most)
    except OSError:
        return b""
