"""The context segment: the smallest thing that is kept or moved.

A segment is frozen. Its text never changes; its GC header (generation, survivals, touches, refcount,
tier, ...) is written by the heap that owns it and by nobody else.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from ctxgc.errors import SegmentError

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

REF_TAG = "ref:"


def new_segment_id() -> str:
    """Return a fresh id for a segment whose maker did not name it."""
    return f"seg-{secrets.token_hex(8)}"


def utc_now() -> datetime:
    """Return the present time for a segment whose maker gave none."""
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


SEGMENT_FIELDS: tuple[str, ...] = ContextSegment.__struct_fields__

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
_COUNTS = ("gc_survival_count", "refcount", "touches", "created_step", "last_touched_step")


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
        return tuple(sorted(value))
    if isinstance(value, list):
        return tuple(value)
    raise _wrong(field, value, "give a list of strings")


def _validate(segment: ContextSegment) -> None:
    for field, choices in _CHOICES.items():
        if getattr(segment, field) not in choices:
            known = ", ".join(sorted(str(choice) for choice in choices if choice is not None))
            raise _wrong(field, getattr(segment, field), f"use one of: {known}")
    text: object = segment.text
    if not isinstance(text, str):
        raise _wrong("text", text, "text is a string")
    segment_id: object = segment.segment_id
    if not isinstance(segment_id, str) or not segment_id:
        raise _wrong("segment_id", segment_id, "leave it out or give a non-empty string")
    _validate_numbers(segment)
    _validate_times(segment)
    if not all(isinstance(item, str) for item in (*segment.references, *segment.tags)):
        raise _wrong("references/tags", (segment.references, segment.tags), "strings only")


def _validate_numbers(segment: ContextSegment) -> None:
    tokens: object = segment.tokens
    if tokens is not None and (not isinstance(tokens, int) or tokens < 0):
        raise _wrong("tokens", tokens, "zero or more, or leave it out to have them counted")
    for field in _COUNTS:
        if getattr(segment, field) < 0:
            raise _wrong(field, getattr(segment, field), "zero or more")
    lines: tuple[int, ...] | None = segment.line_range
    if lines is not None and (len(lines) != 2 or not 0 <= lines[0] <= lines[1]):
        raise _wrong("line_range", lines, "(first, last) with 0 <= first <= last")


def _validate_times(segment: ContextSegment) -> None:
    for field in ("created_at", "last_touched_at"):
        value: object = getattr(segment, field)
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise _wrong(
                field, value, "give a datetime with a time zone, such as datetime.now(UTC)"
            )


def _wrong(field: str, value: object, hint: str) -> SegmentError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return SegmentError(f"segment field '{field}' cannot be {shown}", hint=hint, field=field)
