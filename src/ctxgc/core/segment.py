"""The context segment: the smallest thing that is kept or moved.

A segment is frozen. Its text never changes; its GC header (generation, survivals, touches, refcount,
tier, ...) is written only by the heap that owns it.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from ctxgc.errors import InputError, SegmentError

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
