"""Ingest: segments, provider messages and transcripts come into a context, each of them once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.errors import InputError, MessageError, SegmentError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context, read_from
from ctxgc.mcp.prune import collect_if_due
from ctxgc.mcp.request import MOST_LISTED, Finder, Json, RequestContext
from ctxgc.session import (
    SECRET_TAG,
    ContextSegment,
    Format,
    Message,
    Trust,
    detect_format,
    find_secrets,
    message_bytes,
    parse,
    read_lines,
)

MOST_SEGMENTS = 100_000
MOST_TEXT = 1_000_000
KEPT_LATEST = 100

_TRUST: dict[str | None, Trust] = {"user": "user", "tool": "tool", "assistant": "agent"}


class NewSegment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent says about a segment. Only the text is needed."""

    text: str
    type: str | None = None
    role: str | None = None
    file_path: str | None = None
    line_range: tuple[int, int] | None = None
    tags: tuple[str, ...] = ()
    topic_id: str | None = None
    task_id: str | None = None
    references: tuple[str, ...] = ()
    name: str | None = None


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What came in: the ids in the order given, and which of them were new."""

    ids: list[str]
    new: list[str]
    warnings: list[str]


def take_segments(
    context: Context, finder: Finder, given: Sequence[NewSegment]
) -> list[ContextSegment]:
    """Return segments for what an agent put in; references to names of the same batch are understood.

    Raises:
        SegmentError: a field has a value that no segment may have.
        UnknownSegmentError: a reference means nothing.
    """
    now = context.clock()
    names = {new.name: segment_id_for(new) for new in given if new.name is not None}
    return [_segment(new, now, _references(new, names, finder)) for new in given]


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's message under the id that the same content always gets, and when it was written."""

    message: Message
    at: datetime

    @property
    def segment_ids(self) -> list[str]:
        """The ids of its segments, one for each part."""
        name = self.message.message_id
        return [f"{name}.{place}" for place in range(len(self.message.parts))]


def take_messages(context: Context, messages: Sequence[Mapping[str, Any]]) -> list[NewMessage]:
    """Return provider messages in any format under their ids.

    Raises:
        MessageError: one of them has a shape that no rule of its format allows; `index` names it.
    """
    form = detect_format(messages)
    parsed = [_parsed(index, dict(raw), form) for index, raw in enumerate(messages)]
    seen: Counter[str] = Counter()
    named = []
    for message in parsed:
        digest = _digest(message_bytes(message))
        seen[digest] += 1
        name = f"m-{digest}-{seen[digest]}"
        named.append(NewMessage(message=replace(message, message_id=name), at=context.clock()))
    return named


def enter(
    context: Context, segments: Sequence[ContextSegment], messages: Sequence[NewMessage] = ()
) -> Taken:
    """Put those segments and messages into the session that it does not hold yet.

    Raises:
        InputError: there would be too many, or one is too long; nothing came in.
    """
    heap, work = context.heap, context.work()
    notes = list({s.segment_id: s for s in segments if s.segment_id not in heap}.values())
    fresh = [m for m in messages if not any(i in heap for i in m.segment_ids)]
    texts = [s.text for s in notes] + [p.text for m in fresh for p in m.message.parts]
    _check_room(context, texts)
    if notes:
        work.put([_marked(context, segment) for segment in notes])
    for each in {m.message.message_id: m for m in fresh}.values():
        work.take(each.message, each.at, is_arrival=context.saved.is_own)
    ids = [*(s.segment_id for s in segments), *(i for m in messages for i in m.segment_ids)]
    wanted = {*(s.segment_id for s in notes), *(i for m in fresh for i in m.segment_ids)}
    new = [i for i in dict.fromkeys(ids) if i in wanted and i in heap]
    if new:
        work.note_arrivals()
    context.stash.learn(new)
    latest = dict.fromkeys([*context.saved.latest, *new])
    context.saved.latest = list(latest)[-KEPT_LATEST:]
    return Taken(
        ids=ids,
        new=new,
        warnings=[warning for i in new for warning in _secrets_in(heap.get(i))],
    )


def segment_id_for(new: NewSegment) -> str:
    """Return the id that the same content always gets."""
    content = [new.text, new.type, new.role, new.file_path, new.line_range, new.name, new.task_id]
    return f"seg-{_digest(json.dumps(content).encode())}"


def _segment(new: NewSegment, now: datetime, references: tuple[str, ...]) -> ContextSegment:
    if not new.text.strip():
        raise SegmentError("a segment needs a text", hint="give the text to keep", field="text")
    kind = new.type or ("message" if new.role else "code" if new.file_path else "note")
    return ContextSegment(
        segment_id=segment_id_for(new),
        text=new.text,
        type=kind,  # type: ignore[arg-type] # the segment itself checks the word
        role=new.role,  # type: ignore[arg-type]
        created_at=now,
        trust=_TRUST.get(new.role, "agent"),
        references=references,
        **{name: getattr(new, name) for name in _GIVEN},
    )


_GIVEN = ("file_path", "line_range", "tags", "topic_id", "task_id", "name")


def _references(new: NewSegment, names: Mapping[str, str], finder: Finder) -> tuple[str, ...]:
    own = segment_id_for(new)
    found = (names.get(ref) or finder.one(ref).segment_id for ref in new.references)
    return tuple(dict.fromkeys(ref for ref in found if ref != own))


def _parsed(index: int, raw: dict[str, Any], form: Format) -> Message:
    try:
        return parse(raw, form)
    except MessageError as error:
        details = {**error.details, "index": index}
        raise MessageError(
            f"message {index}: {error.message}", hint=error.hint, **details
        ) from None


def _marked(context: Context, segment: ContextSegment) -> ContextSegment:
    """What is put in belongs to the current task, unless it says to which; likely keys are tagged."""
    task = segment.task_id or context.parts.state.task_id
    if context.config.secrets == "off":
        return replace(segment, task_id=task)
    found = (f"{SECRET_TAG}{secret.rule}" for secret in find_secrets(segment.text))
    return replace(segment, task_id=task, tags=tuple(dict.fromkeys((*segment.tags, *found))))


def _check_room(context: Context, new: Sequence[str]) -> None:
    longest = max(map(len, new), default=0)
    if longest > MOST_TEXT:
        raise InputError(
            f"a text of {longest} characters is too long",
            hint=f"split it: at most {MOST_TEXT} characters each",
            field="text",
        )
    if len(context.heap) + len(new) > MOST_SEGMENTS:
        raise InputError(
            f"a context holds at most {MOST_SEGMENTS} segments",
            hint="context_gc_prune(query, strategy='delete', confirm=true) makes room",
            field="segments",
        )


def _secrets_in(segment: ContextSegment) -> list[str]:
    rules = sorted({secret.rule for secret in find_secrets(segment.text)})
    named = f"{segment.segment_id} seems to hold a secret ({', '.join(rules)})"
    return [f"{named}: delete it unless you mean to keep it"] if rules else []


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


# -- Transcripts: imported piece by piece, later only what was added


PIECE = 1 << 20
LONGEST_LINE = 64 << 20
HEAD = 256


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a transcript: its messages, and how far the file was read with it.

    `is_last`: nothing more can be read now; a line that its writer has not finished may follow.
    """

    messages: list[NewMessage]
    offset: int
    size: int
    passed_over: int
    broken: int
    is_last: bool


def next_piece(context: Context, path: Path) -> Piece:
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
    read = ((entry.message(), entry.written_at) for entry in reading.entries)
    sound = [
        NewMessage(message=message, at=at or context.clock())
        for message, at in read
        if message is not None
    ]
    return Piece(
        messages=sound,
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
    imports[_key(path)] = {"path": str(path), "offset": offset, "head": _file_digest(head)}
    context.saved.imports = imports


def _offset(context: Context, path: Path) -> int:
    known = context.saved.imports.get(_key(path))
    if known is None:
        return 0
    head, size = read_from(path, 0, min(HEAD, known["offset"]))
    return (
        int(known["offset"])
        if size >= known["offset"] and known["head"] == _file_digest(head)
        else 0
    )


def _key(path: Path) -> str:
    return _file_digest(str(path).encode("utf-8", "surrogateescape"))


def _file_digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()


# -- Answers


def ingest(
    request: RequestContext,
    context: Context,
    given: Sequence[NewSegment],
    messages: Sequence[Mapping[str, Any]],
) -> Json:
    """Take in a batch."""
    if not given and not messages:
        raise InputError(
            "there is nothing to ingest", hint="give segments or messages", field="segments"
        )
    before = context.tokens
    segments = take_segments(context, request.finder(context), given)
    taken = enter(context, segments, take_messages(context, messages))
    collected = collect_if_due(context)
    names = {n.name: i for n, i in zip(given, taken.ids, strict=False) if n.name}
    return {
        "ingested": len(taken.new),
        "already_known": len(dict.fromkeys(taken.ids)) - len(taken.new),
        "segment_ids": taken.ids[:MOST_LISTED],
        **({"names": names} if names else {}),
        **({"warnings": taken.warnings[:10]} if taken.warnings else {}),
        **collected,
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


def import_piece(request: RequestContext, context: Context, path: str) -> Json:
    """Take in the next piece of a transcript."""
    before = context.tokens
    real = request.roots.checked(path)
    piece = next_piece(context, real)
    taken = enter(context, (), piece.messages)
    if piece.offset:
        note_offset(context, real, piece.offset)
    return {
        "ingested": len(taken.new),
        "already_known": len(taken.ids) - len(taken.new),
        "passed_over": piece.passed_over,
        "broken": piece.broken,
        "bytes_read": piece.offset,
        "bytes": piece.size,
        "done": piece.is_last,
        **collect_if_due(context),
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }
