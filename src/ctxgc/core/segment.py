"""The context segment, the smallest thing that is kept or moved, and the message it is a part of.

A segment is frozen. Its text never changes; its GC header (generation, survivals, touches, refcount,
tier, ...) is written only by the heap that owns it. A message keeps the provider's own object untouched.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import compress, count
from operator import attrgetter, is_not
from types import NoneType
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr, replace

from ctxgc.errors import InputError, SegmentError

# -- A provider message as plain data: its parts, and the provider's own object


Role = Literal["system", "user", "assistant", "tool"]
Format = Literal["openai", "responses", "anthropic"]
PartKind = Literal["text", "tool_call", "tool_result", "thinking", "media", "other"]
Origin = Literal["conversation", "gc_summary", "gc_notice"]

FORMATS: tuple[Format, ...] = ("openai", "responses", "anthropic")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing inside a message that is kept or moved by itself: it becomes one segment.

    `text` is what the model reads of it (a call's arguments as JSON text, a result's output).
    `path` is its place in `Message.data`, for example `("content", 2)`; the whole message is `()`.
    """

    kind: PartKind = "text"
    text: str = ""
    path: tuple[str | int, ...] = ()
    call_id: str | None = None
    name: str | None = None
    signed: bool = False
    is_error: bool = False
    media_tokens: int = 0
    server_side: bool = False


def _new_message_id() -> str:
    return f"msg-{secrets.token_hex(8)}"


class Message(msgspec.Struct, frozen=True):
    """One message of a history, in the order the provider wants it.

    In the `responses` format every input item is a message of its own. Role and parts are enough to make
    one (S2): it gets an id, and the form that chat completions have.

    Raises:
        InputError: chat completions have no form for these parts.
    """

    role: Role
    parts: tuple[Part, ...]
    message_id: str = msgspec.field(default_factory=_new_message_id)
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    format: Format = "openai"
    source: bytes | None = None
    origin: Origin = "conversation"

    def __post_init__(self) -> None:
        if not self.data:
            _complete(self)

    def calls(self) -> tuple[str, ...]:
        """Return the ids of the client-side tool calls that this message makes, in order."""
        return self._ids("tool_call")

    def results(self) -> tuple[str, ...]:
        """Return the ids of the client-side tool calls that this message answers, in order."""
        return self._ids("tool_result")

    def text(self) -> str:
        """Return the text parts joined by newlines."""
        return "\n".join(part.text for part in self.parts if part.kind == "text")

    def opens_turn(self) -> bool:
        """Return whether the user says something here; a tool result, summary or notice opens no turn."""
        if self.role != "user" or self.origin != "conversation":
            return False
        return any(part.kind != "tool_result" for part in self.parts)

    def _ids(self, kind: PartKind) -> tuple[str, ...]:
        ids = [
            part.call_id
            for part in self.parts
            if part.kind == kind and part.call_id is not None and not part.server_side
        ]
        return tuple(ids)


def _complete(message: Message) -> None:
    """Give a message that was made of its parts alone an id and its provider form."""
    given: str | None = message.message_id
    force_setattr(message, "message_id", given or _new_message_id())
    said = [part for part in message.parts if part.kind == "text"]
    calls = [part for part in message.parts if part.kind == "tool_call"]
    results = [part for part in message.parts if part.kind == "tool_result"]
    data: dict[str, Any] = {"role": message.role}
    if message.role == "tool" and len(results) == len(message.parts) == 1:
        data |= {"tool_call_id": results[0].call_id or "", "content": results[0].text}
        parts = results
    elif message.format != "openai" or results or len(said) + len(calls) < len(message.parts):
        raise InputError(
            f"a message of {message.role} cannot be made of these parts alone",
            hint="pass texts, calls, or one tool result; else parse the provider's own message",
            field="parts",
        )
    else:
        blocks = [{"type": "text", "text": part.text} for part in said]
        whole = len(said) == 1
        data["content"] = said[0].text if whole else blocks or None
        paths = [("content",)] if whole else [("content", place) for place in range(len(said))]
        parts = [replace(part, path=path) for part, path in zip(said, paths, strict=True)]
        if calls:
            data["tool_calls"] = [_call_data(part) for part in calls]
            parts += [replace(p, path=("tool_calls", n)) for n, p in enumerate(calls)]
    force_setattr(message, "parts", tuple(parts))
    force_setattr(message, "data", data)


def _call_data(part: Part) -> dict[str, Any]:
    function = {"name": part.name or "", "arguments": part.text}
    return {"id": part.call_id or "", "type": "function", "function": function}


def common_prefix(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many leading items are the very same objects in both sequences."""
    differing = compress(count(), map(is_not, before, now))
    return next(differing, min(len(before), len(now)))


# -- Fields: the words they may hold, and how values are checked


SegmentType = Literal["message", "code", "log", "note", "decision", "summary"]
Generation = Literal["young", "old"]
Tier = Literal["working", "stashed"]
Policy = Literal["locked", "preservable", "partial", "ephemeral", "conditional"]
Source = Literal["system", "plugin", "enrichment", "conversation"]
SegmentRole = Literal["system", "user", "assistant", "tool"]
SegmentPart = Literal["text", "tool_call", "tool_result", "thinking", "media", "other"]
Access = Literal["read", "edit", "run"]
Trust = Literal["system", "user", "agent", "tool"]
Superseding = Literal["re-read", "edited", "re-run", "identical", "resolved"]

_AWARE = "give a datetime with a time zone, such as datetime.now(UTC)"

_CHOICES: dict[str, frozenset[Any]] = {
    "type": frozenset(get_args(SegmentType)),
    "role": frozenset((*get_args(SegmentRole), None)),
    "generation": frozenset(get_args(Generation)),
    "tier": frozenset(get_args(Tier)),
    "policy": frozenset(get_args(Policy)),
    "source": frozenset(get_args(Source)),
    "part": frozenset((*get_args(SegmentPart), None)),
    "access": frozenset((*get_args(Access), None)),
    "trust": frozenset(get_args(Trust)),
    "superseded_how": frozenset((*get_args(Superseding), None)),
}
_COUNTS = (
    "created_step", "last_touched_step", "gc_survival_count", "refcount", "touches", "protected_until",
)  # fmt: skip
_NAMES = (
    "reply_to", "derived_from", "file_path", "topic_id", "task_id", "project_id", "message_id",
    "call_id", "bond_id", "command", "superseded_by", "name",
)  # fmt: skip

_OPTIONAL = (str, NoneType)
_KINDS: dict[str, tuple[type, ...]] = {
    "segment_id": (str,),
    "text": (str,),
    **dict.fromkeys((*_CHOICES, *_NAMES), _OPTIONAL),
    **dict.fromkeys((*_COUNTS, "position"), (int,)),
    "tokens": (int, NoneType),
    "line_range": (tuple, NoneType),
    "references": (tuple,),
    "tags": (tuple,),
    "pinned": (bool,),
    "failed": (bool,),
    "created_at": (datetime,),
    "last_touched_at": (datetime,),
}
_values = attrgetter(*_KINDS)
_chosen = attrgetter(*_CHOICES)
_counts = attrgetter(*_COUNTS)


def checked_time(field: str, value: datetime) -> datetime:
    """Return a time that can be compared with all others.

    Raises:
        InputError: it is not a datetime with a time zone.
    """
    given: object = value
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InputError(f"{field} cannot be {value!r}", hint=_AWARE, field=field)
    return given


def _normalise(segment: ContextSegment) -> None:
    """Turn the lists and sets that callers pass into tuples, so that a segment stays frozen."""
    for field in ("references", "tags"):
        value: object = getattr(segment, field)
        if not isinstance(value, tuple):
            force_setattr(segment, field, _as_tuple(field, value))
    line_range: object = segment.line_range
    if isinstance(line_range, list):
        force_setattr(segment, "line_range", tuple(line_range))


def _as_tuple(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, (set, frozenset)):
        return tuple(sorted(value, key=str))
    if isinstance(value, list):
        return tuple(value)
    raise _wrong(field, value, "give a list of strings")


def _validate(segment: ContextSegment) -> None:
    """Check all fields of a segment.

    Raises:
        SegmentError: a field has a value that no segment may have; `details["field"]` names it.
    """
    if not _right_kinds(tuple(map(type, _values(segment)))):
        _settle_kinds(segment)
    if not _right_choices(_chosen(segment)):
        _refuse_wrong_choices(segment)
    if not segment.segment_id:
        raise _wrong("segment_id", segment.segment_id, "leave it out or give a non-empty string")
    for field in ("references", "tags"):
        for item in getattr(segment, field):
            if not isinstance(item, str):
                raise _wrong(field, item, "give a list of strings")
    _validate_numbers(segment)
    _validate_times(segment)


@lru_cache(1024)
def _right_kinds(kinds: tuple[type, ...]) -> bool:
    return all(kind in known for kind, known in zip(kinds, _KINDS.values(), strict=True))


@lru_cache(1024)
def _right_choices(values: tuple[str | None, ...]) -> bool:
    return all(value in known for value, known in zip(values, _CHOICES.values(), strict=True))


def _settle_kinds(segment: ContextSegment) -> None:
    """Make subclasses of str, int and float plain; raise for the first field of a wrong kind."""
    for field, kinds in _KINDS.items():
        value: object = getattr(segment, field)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            known = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
            hint = _AWARE if datetime in kinds else f"give a value of type {known}"
            raise _wrong(field, value, hint)
        if isinstance(value, str):
            force_setattr(segment, field, str.__str__(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            force_setattr(segment, field, int.__int__(value))


def _refuse_wrong_choices(segment: ContextSegment) -> None:
    for field, choices in _CHOICES.items():
        if getattr(segment, field) not in choices:
            known = ", ".join(sorted(str(choice) for choice in choices if choice is not None))
            raise _wrong(field, getattr(segment, field), f"use one of: {known}")


def _validate_numbers(segment: ContextSegment) -> None:
    if segment.tokens is not None and segment.tokens < 0:
        raise _wrong("tokens", segment.tokens, "zero or more, or leave it out to have them counted")
    if min(_counts(segment)) < 0:
        field = next(field for field in _COUNTS if getattr(segment, field) < 0)
        raise _wrong(field, getattr(segment, field), "zero or more")
    if segment.line_range is not None and not _is_range(segment.line_range):
        raise _wrong("line_range", segment.line_range, "(first, last) with 0 <= first <= last")


def _is_range(lines: tuple[int, ...]) -> bool:
    if len(lines) != 2 or not all(type(line) is int for line in lines):
        return False
    return 0 <= lines[0] <= lines[1]


def _validate_times(segment: ContextSegment) -> None:
    if segment.created_at.tzinfo is None:
        raise _wrong("created_at", segment.created_at, _AWARE)
    if segment.last_touched_at.tzinfo is None:
        raise _wrong("last_touched_at", segment.last_touched_at, _AWARE)


def _wrong(field: str, value: object, hint: str) -> SegmentError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return SegmentError(f"segment field '{field}' cannot be {shown}", hint=hint, field=field)


__all__ = [
    "REF_TAG", "SECRET_TAG", "SEGMENT_FIELDS", "Access", "ContextSegment", "Generation", "Policy",
    "SegmentPart", "SegmentRole", "SegmentType", "Source", "Superseding", "Tier", "Trust", "checked_time",
    "explicit_references", "new_segment_id", "utc_now",
]  # fmt: skip

REF_TAG = "ref:"
SECRET_TAG = "secret:"  # noqa: S105 - a label, no password


def new_segment_id() -> str:
    """Return a fresh id for a segment whose maker did not name it."""
    return f"seg-{secrets.token_hex(8)}"


def utc_now() -> datetime:
    """Return the present time, as whatever is not given a clock sees it."""
    return datetime.now(UTC)


class ContextSegment(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True
):
    """One piece of context with its GC header. Only `text` and `type` are required.

    Raises:
        SegmentError: a field has a value that no segment may have; `details["field"]` names it.
    """

    text: str
    type: SegmentType
    segment_id: str = msgspec.field(default_factory=new_segment_id)
    role: SegmentRole | None = None
    created_at: datetime = msgspec.field(default_factory=utc_now)
    last_touched_at: datetime = None  # type: ignore[assignment]  # set to created_at below
    created_step: int = 0
    last_touched_step: int = 0
    pinned: bool = False
    generation: Generation = "young"
    gc_survival_count: int = 0
    refcount: int = 0
    touches: int = 0
    references: tuple[str, ...] = ()
    reply_to: str | None = None
    derived_from: str | None = None
    file_path: str | None = None
    line_range: tuple[int, int] | None = None
    tags: tuple[str, ...] = ()
    topic_id: str | None = None
    task_id: str | None = None
    project_id: str | None = None
    tokens: int | None = None
    tier: Tier = "working"
    policy: Policy = "partial"
    source: Source = "conversation"
    message_id: str | None = None
    part: SegmentPart | None = None
    call_id: str | None = None
    bond_id: str | None = None
    access: Access | None = None
    command: str | None = None
    failed: bool = False
    superseded_by: str | None = None
    superseded_how: Superseding | None = None
    protected_until: int = 0
    position: int = -1
    trust: Trust = "user"
    name: str | None = None

    def __post_init__(self) -> None:
        touched: object = self.last_touched_at
        if touched is None:
            force_setattr(self, "last_touched_at", self.created_at)
        _normalise(self)
        _validate(self)

    def age(self, now: datetime) -> float:
        """Return how many seconds ago it was made."""
        return (now - self.created_at).total_seconds()


SEGMENT_FIELDS: tuple[str, ...] = ContextSegment.__struct_fields__


# -- Texts that are not in memory: a stashed segment keeps its header, and its text is read when asked for


class StoredText:
    """Stands in a segment for its text, which is read from where it is stored each time."""

    __slots__ = ("_read", "_segment_id")

    def __init__(self, segment_id: str, read: Callable[[str], str]) -> None:
        self._segment_id = segment_id
        self._read = read

    def __call__(self) -> str:
        """Return the text."""
        return self._read(self._segment_id)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredText):
            if (self._segment_id, self._read) == (other._segment_id, other._read):
                return True
            return self() == other()
        return self() == other

    def __hash__(self) -> int:
        return hash(self())


_SLOT: Any = ContextSegment.__dict__["text"]


def _text_of(segment: ContextSegment) -> str:
    text: Any = _SLOT.__get__(segment)
    return text() if text.__class__ is StoredText else text


# The field stays what it is to msgspec; only reading it looks whether the text is here.
ContextSegment.text = property(_text_of, _SLOT.__set__)  # type: ignore[assignment]


def put_away(segment: ContextSegment, read: Callable[[str], str]) -> None:
    """Keep only the header of a segment in memory; `read` returns the text for its id from now on."""
    force_setattr(segment, "text", StoredText(segment.segment_id, read))


def take_out(segment: ContextSegment) -> None:
    """Keep the text of a segment in memory again."""
    force_setattr(segment, "text", segment.text)


def explicit_references(segment: ContextSegment) -> dict[str, str]:
    """Return the ids that a segment refers to, each with the kind of link, in a stable order."""
    links = dict.fromkeys(segment.references, "reference")
    for tag in segment.tags:
        if tag.startswith(REF_TAG):
            links.setdefault(tag[len(REF_TAG) :], "reference")
    if segment.reply_to is not None:
        links.setdefault(segment.reply_to, "reply")
    if segment.derived_from is not None:
        links.setdefault(segment.derived_from, "derived-from")
    return links


def without_strays(segment: ContextSegment, known: Container[str]) -> ContextSegment:
    """Return a segment without links to segments that are gone, such as those deleted before a crash."""
    kept = {
        "references": tuple(i for i in segment.references if i in known),
        "tags": tuple(
            tag
            for tag in segment.tags
            if not tag.startswith(REF_TAG) or tag[len(REF_TAG) :] in known
        ),
        "reply_to": segment.reply_to if segment.reply_to in known else None,
        "derived_from": segment.derived_from if segment.derived_from in known else None,
    }
    if all(getattr(segment, name) == value for name, value in kept.items()):
        return segment
    return msgspec.structs.replace(segment, **kept)


# -- Segments as JSON values

_FIELD = re.compile(r"`(?:\$\.)?(\w+)[^`]*`")
"""The names in a message of msgspec; the last one is that of the field."""


def segment_to_dict(segment: ContextSegment) -> dict[str, Any]:
    """Return all fields of a segment as JSON values."""
    data: dict[str, Any] = msgspec.to_builtins(segment, enc_hook=StoredText.__call__)
    return data


def segment_from_dict(data: Mapping[str, Any]) -> ContextSegment:
    """Return the segment that JSON values describe.

    Raises:
        SegmentError: a key is not known, a value is of the wrong kind, or a required one is missing.
    """
    for key in data:
        if key not in SEGMENT_FIELDS:
            near = get_close_matches(str(key), SEGMENT_FIELDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else "leave it out"
            raise SegmentError(f"a segment has no field '{key}'", hint=hint, field=str(key))
    try:
        return msgspec.convert(dict(data), ContextSegment)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SegmentError):
            raise error.__cause__ from None
        field = _FIELD.findall(str(error))[-1]
        raise SegmentError(f"a segment cannot be read: {error}", field=field) from None


def segment_schema() -> dict[str, Any]:
    """Return the JSON Schema of a segment."""
    return msgspec.json.schema(ContextSegment)
