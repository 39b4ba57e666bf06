"""Intake: segments and provider messages come into a context, each once however often it is sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.core.message import Format, Message, Part
from ctxgc.core.secrets import find_secrets
from ctxgc.core.segment import ContextSegment, Trust
from ctxgc.errors import InputError, MessageError, SegmentError
from ctxgc.mcp.context import Context
from ctxgc.mcp.finding import Finder
from ctxgc.strategies.segmenting import Segmenter
from ctxgc.tokens import TokenCounter
from ctxgc.wire import detect_format, message_bytes, parse

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


def take_messages(
    context: Context, counter: TokenCounter, messages: Sequence[Mapping[str, Any]]
) -> list[ContextSegment]:
    """Return segments for provider messages in any format, one for each part.

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
        named.append(replace(message, message_id=f"m-{digest}-{seen[digest]}"))
    return segments_of(context, counter, [(message, None) for message in named])


def segments_of(
    context: Context,
    counter: TokenCounter,
    messages: Iterable[tuple[Message, datetime | None]],
) -> list[ContextSegment]:
    """Return the segments of messages with their times; results find the calls of earlier ones."""
    moment = [context.clock()]
    segmenter = Segmenter(counter, context.heap, lambda: moment[0])
    for call in map(context.heap.get, context.heap.bonds.open_calls()):
        segmenter.prepare(_as_message(call))
    found: list[ContextSegment] = []
    for message, written_at in messages:
        moment[0] = written_at or context.clock()
        made = segmenter.prepare(message)
        found.extend(
            replace(
                segment,
                segment_id=f"{message.message_id}.{place}",
                text=_text(message, message.parts[place]),
            )
            for place, segment in enumerate(made)
        )
    return found


def enter(context: Context, segments: Sequence[ContextSegment]) -> Taken:
    """Put those segments into the heap that it does not hold yet.

    Raises:
        InputError: there would be too many, or one is too long; nothing came in.
    """
    heap = context.heap
    new = list({s.segment_id: s for s in segments if s.segment_id not in heap}.values())
    _check_room(context, new)
    if new:
        heap.add_all(new)
        heap.updates += 1
    context.stash.learn([segment.segment_id for segment in new])
    latest = dict.fromkeys([*context.saved.latest, *(s.segment_id for s in new)])
    context.saved.latest = list(latest)[-KEPT_LATEST:]
    return Taken(
        ids=[segment.segment_id for segment in segments],
        new=[segment.segment_id for segment in new],
        warnings=[warning for segment in new for warning in _secrets_in(segment)],
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


def _as_message(call: ContextSegment) -> Message:
    """The message of an open call, enough for its result to find it."""
    part = Part(kind="tool_call", text=call.text, call_id=call.call_id, name=call.name)
    bond = call.bond_id or call.segment_id
    return Message(message_id=bond, role="assistant", parts=(part,), data={}, format="openai")


def _text(message: Message, part: Part) -> str:
    """What is kept of a part: its text; of an image or the like its own JSON, if that is not too long."""
    if part.text and part.kind != "media":
        return part.text
    value: Any = message.data
    for step in part.path:
        value = value[step]
    raw = json.dumps(value, ensure_ascii=False)
    return raw if len(raw) <= MOST_TEXT else part.text


def _check_room(context: Context, new: Sequence[ContextSegment]) -> None:
    longest = max(new, key=lambda segment: len(segment.text), default=None)
    if longest is not None and len(longest.text) > MOST_TEXT:
        raise InputError(
            f"a text of {len(longest.text)} characters is too long",
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
