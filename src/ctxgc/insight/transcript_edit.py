"""Transcripts edited: what makes one history of another, and the repair of a history that breaks rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.wire import repair, validate
from ctxgc.wire.transcripts import (
    Addition,
    Damage,
    Revision,
    TranscriptEntry,
    Writable,
    open_transcript,
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

    `data` is None when no message would be left; `shapeless` counts messages that could not be read.
    """

    data: bytes | None
    shapeless: int
    fixes: list[str]


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


def repair_transcript(file: Writable) -> TranscriptRepair:
    """Return a transcript in which every message of the window is one that its provider takes."""
    messages = [m for m in (entry.message() for entry in file.entries) if m is not None]
    result = repair(messages, file.format, complete=False)
    data = None
    if result.messages:
        view = [(message.message_id, message.data) for message in result.messages]
        data = file.write(revision_between(file.entries, view))
    return TranscriptRepair(
        data=data,
        shapeless=len(file.entries) - len(messages),
        fixes=[f"{fix.action}: {fix.text}" for fix in result.fixes],
    )
