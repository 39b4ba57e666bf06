"""Reading transcripts: whole lines from any offset, whatever agent wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ctxgc.core.message import Format
from ctxgc.wire.detect import detect_format
from ctxgc.wire.transcripts import claude_code, codex, plain
from ctxgc.wire.transcripts.entry import Entry, Reading
from ctxgc.wire.transcripts.sniffing import kind_of

Line = tuple[int, bytes, Mapping[str, Any] | None]


def read_lines(data: bytes, *, offset: int = 0, is_end: bool = False) -> Reading:
    """Return what the whole lines of a piece of a transcript say.

    Args:
        data: the piece, from the beginning of a line.
        offset: where in the file it begins.
        is_end: whether the file ends with it; only then a last line without its newline may count.

    A line that cannot be read is counted and passed over. Of a last line without its newline, only
    one that is whole JSON is used: its writer may not have finished it.
    """
    lines = list(_lines(data, offset, is_end=is_end))
    said = [line for _, _, line in lines if line is not None]
    form = _plain_format(said)
    entries = [_entry(line, form) for line in lines]
    found = [entry for entry in entries if entry is not None]
    return Reading(
        entries=found,
        used=sum(len(raw) for _, raw, _ in lines),
        passed_over=len(said) - len(found),
        broken=sum(line is None and bool(raw.strip()) for _, raw, line in lines),
    )


def _lines(data: bytes, offset: int, *, is_end: bool) -> Iterator[Line]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1
        raw = data[start : end or len(data)]
        line = _object(raw)
        if not end and not (is_end and line is not None):
            return
        yield offset + start, raw, line
        start += len(raw)


def _object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _plain_format(lines: list[Mapping[str, Any]]) -> Format:
    return detect_format([line for line in lines if kind_of(line) == "plain"])


def _entry(line: Line, form: Format) -> Entry | None:
    offset, raw, said = line
    if said is None:
        return None
    match kind_of(said):
        case "claude_code":
            return claude_code.entry_of(said)
        case "codex":
            return codex.entry_of(said, offset)
        case "plain":
            return plain.entry_of(said, form, offset, raw)
    return None
