"""Transcripts edited: what makes one history of another, and the repair of a history that breaks rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.wire import dump, repair, validate
from ctxgc.wire.transcripts import (
    HEAD_BYTES,
    Addition,
    Damage,
    Revision,
    TranscriptEntry,
    Writable,
    decode_line,
    open_transcript,
    read_whole,
    sniff,
    writable,
)

View = Sequence[tuple[str | None, dict[str, Any]]]
"""Messages to show, each with the id of the entry that it comes from; None for a new one."""


def revision_between(entries: Sequence[TranscriptEntry], view: View) -> Revision:
    """Return how a view differs from the entries; a message that moved is removed and added again."""
    stays = _in_order(entries, view)
    added: list[Addition] = []
    following = None
    for number in range(len(view) - 1, -1, -1):
        name, data = view[number]
        if name is not None and stays.get(name) == number:
            following = name
        else:
            added.append(Addition(following, data))
    shown = {name: view[number][1] for name, number in stays.items()}
    edited = {
        entry.message_id: shown[entry.message_id]
        for entry in entries
        if shown.get(entry.message_id, entry.data) != entry.data
    }
    gone = frozenset(entry.message_id for entry in entries if entry.message_id not in shown)
    return Revision(gone=gone, edited=edited, added=tuple(reversed(added)))


def _in_order(entries: Sequence[TranscriptEntry], view: View) -> dict[str, int]:
    """Return the entries that the view keeps in their order, each with its place in the view."""
    places = {entry.message_id: place for place, entry in enumerate(entries)}
    found: dict[str, int] = {}
    last = -1
    for number, (name, _) in enumerate(view):
        place = -1 if name is None else places.get(name, -1)
        if name is not None and place > last:
            found[name] = number
            last = place
    return found


class BrokenRule(msgspec.Struct, frozen=True, kw_only=True):
    """A message that its provider would refuse: where it is, why, and what to do about it."""

    index: int
    line: int
    text: str
    fix: str


class TranscriptRepair(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript that keeps all rules: its new bytes, and what was done.

    `data` is None when no message would be left; `shapeless` counts messages that could not be read,
    `dropped` are the lines that could not.
    """

    data: bytes | None
    shapeless: int
    fixes: list[str]
    dropped: list[int]


def damaged_lines(path: Path) -> list[Damage]:
    """Return the lines of a transcript that cannot be read.

    Raises:
        TranscriptError: it is not a transcript.
    """
    transcript = open_transcript(path)
    for _ in transcript.items():
        pass
    return transcript.damage


def broken_rules(file: Writable) -> Iterator[BrokenRule]:
    """Yield what a provider would refuse in the window of a transcript."""
    for each in validate([entry.data for entry in file.entries], file.format, complete=False):
        line = file.entries[each.index].line
        yield BrokenRule(index=each.index, line=line, text=each.text, fix=each.fix)


def repair_transcript(path: Path) -> TranscriptRepair:
    """Return a transcript that can be read, and in whose window every message is one its provider takes.

    Damaged lines are dropped, and lines that followed one follow the line before it. The file is not
    changed.

    Raises:
        TranscriptError: it cannot be read, or holds no message.
    """
    data, dropped = _without_damage(read_whole(path))
    file = writable(data, name=str(path))
    messages = [m for m in (entry.message() for entry in file.entries) if m is not None]
    result = repair(messages, file.format, complete=False)
    new = None
    if result.messages:
        view = [(message.message_id, message.data) for message in result.messages]
        new = file.write(revision_between(file.entries, view))
    return TranscriptRepair(
        data=new,
        shapeless=len(file.entries) - len(messages),
        fixes=[f"{fix.action}: {fix.text}" for fix in result.fixes],
        dropped=dropped,
    )


def _without_damage(data: bytes) -> tuple[bytes, list[int]]:
    """Return a transcript without the lines that cannot be read, and their numbers.

    A document is one value: no part of it can be dropped.
    """
    found = sniff(data[:HEAD_BYTES])
    if found is None or found.is_document:
        return data, []
    raws = _lines(data)
    read = [decode_line(raw)[0] if raw.strip() else {} for raw in raws]
    dropped = [number for number, line in enumerate(read, 1) if line is None]
    if not dropped:
        return data, []
    kept = [(raw, line) for raw, line in zip(raws, read, strict=True) if line is not None]
    return b"".join(_linked(kept)), dropped


def _lines(data: bytes) -> list[bytes]:
    *whole, last = data.split(b"\n")
    return [*(line + b"\n" for line in whole), *([last] if last else ())]


def _linked(lines: Sequence[tuple[bytes, dict[str, Any]]]) -> Iterator[bytes]:
    """Yield lines; one whose parent is lost gets the line before it as its parent.

    Claude Code shows nothing that is before a gap.
    """
    known = {line.get("uuid") for _, line in lines}
    last: dict[bool, str] = {}
    for raw, line in lines:
        is_side, parent, uuid = (
            bool(line.get("isSidechain")),
            line.get("parentUuid"),
            line.get("uuid"),
        )
        if isinstance(parent, str) and parent not in known:
            yield dump({**line, "parentUuid": last.get(is_side)}).encode() + b"\n"
        else:
            yield raw
        if isinstance(uuid, str):
            last[is_side] = uuid
