"""The doctor for histories: what cannot be read, what a provider would refuse, and the repair."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxgc.agents import Finding
from ctxgc.cli.stash_store import count
from ctxgc.core.message import Message
from ctxgc.errors import TranscriptError
from ctxgc.pruning import write_in_place
from ctxgc.pruning.stillness import check_still
from ctxgc.wire import repair, validate
from ctxgc.wire.transcripts import open_transcript
from ctxgc.wire.transcripts.entry import Damage, Entry
from ctxgc.wire.transcripts.revision import Addition, Revision, Writable
from ctxgc.wire.transcripts.writing import open_writable

MOST_SHOWN = 20


def check_history(path: Path, *, fix: bool) -> list[Finding]:
    """Return what is wrong with the window of a transcript; with `fix` it is repaired.

    Raises:
        TranscriptError: nothing of the file can be read.
        TranscriptBusyError: it should be repaired while its agent writes it.
    """
    where = path.name
    damage = [_damaged(where, each) for each in _damage(path)]
    try:
        file = open_writable(path)
    except TranscriptError as error:
        if not damage:
            raise
        return [*damage, Finding(level="error", where=where, what=error.message, fix=error.hint)]
    broken = list(_broken(file, where))
    if not broken:
        said = f"{file.kind}, {count(len(file.entries), 'message')} in the window, all rules kept"
        return [*damage, Finding(level="ok", where=where, what=said)]
    if fix:
        return [*damage, *_fixed(path, file, where)]
    hint = f"ctxgc doctor {path} --fix"
    return [*damage, *broken, Finding(level="info", where=where, what="can be repaired", fix=hint)]


def revision_between(entries: Sequence[Entry], messages: Sequence[Message]) -> Revision:
    """Return how a repaired history differs from the entries; a message that moved is taken and put."""
    places = {entry.message_id: place for place, entry in enumerate(entries)}
    stays: dict[str, Message] = {}
    last = -1
    for message in messages:
        place = places.get(message.message_id, -1)
        if place > last:
            stays[message.message_id] = message
            last = place
    added: list[Addition] = []
    following = None
    for message in reversed(messages):
        if stays.get(message.message_id) is message:
            following = message.message_id
        else:
            added.append(Addition(following, message.data))
    edited = {e.message_id: stays[e.message_id].data for e in entries if _is_edited(e, stays)}
    gone = frozenset(e.message_id for e in entries if e.message_id not in stays)
    return Revision(gone=gone, edited=edited, added=tuple(reversed(added)))


def _is_edited(entry: Entry, stays: dict[str, Message]) -> bool:
    return entry.message_id in stays and stays[entry.message_id].data != entry.data


def _damage(path: Path) -> list[Damage]:
    transcript = open_transcript(path)
    for _ in transcript.items():
        pass
    return transcript.damage


def _damaged(where: str, damage: Damage) -> Finding:
    return Finding(
        level="warning" if damage.is_lost else "info",
        where=f"{where} line {damage.line}",
        what=damage.what,
        fix="it is passed over" if damage.is_lost else "",
    )


def _broken(file: Writable, where: str) -> Iterator[Finding]:
    found = validate([entry.data for entry in file.entries], file.format, complete=False)
    for each in found[:MOST_SHOWN]:
        line = file.entries[each.index].line
        place = f"{where} line {line}" if line else f"{where} message {each.index}"
        yield Finding(level="error", where=place, what=each.text, fix=each.fix)
    if len(found) > MOST_SHOWN:
        rest = f"... and {len(found) - MOST_SHOWN} more"
        yield Finding(level="error", where=where, what=rest)


def _fixed(path: Path, file: Writable, where: str) -> list[Finding]:
    seen = check_still(path)
    raw = path.read_bytes()
    messages = [m for m in (entry.message() for entry in file.entries) if m is not None]
    result = repair(messages, file.format, complete=False)
    if not result.messages:
        what = "no message would be left: nothing was changed"
        return [Finding(level="error", where=where, what=what, fix="correct it by hand")]
    data = file.write(revision_between(file.entries, result.messages))
    backup = write_in_place(
        path, raw, gzip.compress(data, mtime=0) if _is_packed(raw) else data, seen
    )
    shapeless = len(file.entries) - len(messages)
    said = [f"dropped: {count(shapeless, 'message')} of no valid shape"] if shapeless else []
    said += [f"{fix.action}: {fix.text}" for fix in result.fixes]
    done = [Finding(level="ok", where=where, what=what) for what in said]
    kept = f"the original is {backup.original}"
    return [
        *done,
        Finding(level="ok", where=where, what=kept, fix=f"ctxgc undo {path} puts it back"),
    ]


def _is_packed(raw: bytes) -> bool:
    return raw[:2] == b"\x1f\x8b"
