"""The context segment: the smallest thing that is kept or moved.

A segment is frozen. Its text never changes; its GC header (generation, survivals, touches, refcount,
tier, ...) is written by the heap that owns it and by nobody else.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core.kinds import (
    Access,
    Generation,
    Policy,
    SegmentPart,
    SegmentRole,
    SegmentType,
    Source,
    Superseding,
    Tier,
    Trust,
    checked_time,
    normalise,
    validate,
)  # fmt: skip

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
        normalise(self)
        validate(self)


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
