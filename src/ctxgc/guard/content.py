"""ContentItem: a piece of context as the pruner sees it, and how one is made from other things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.core.admission import rough_tokens
from ctxgc.core.recent import is_request
from ctxgc.core.segment import ContextSegment, checked_time
from ctxgc.errors import InputError

Count = Callable[[str], int]


class ContentItem(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of context.

    Args:
        id: names it in results.
        type: what kind of content it is, such as `system_prompt` or `task_history`.
        size: its tokens; counted roughly from the text when left out.
        timestamp: when it came in.
        last_referenced_at: when something last referred to it, if that is known.
        task_id: the task that it belongs to.
        reference_count: how many others refer to it.
        is_essential: whether it is to stay as long as all essentials fit.
        pinned: whether it may never leave.
        resolved: whether the error that it reports is resolved.
        superseded: whether later content says the same anew.
        bond: pieces with the same bond stay or go together.
        tags: further kinds of content that it is.
    """

    id: str
    type: str
    timestamp: datetime
    text: str = ""
    size: int = -1
    last_referenced_at: datetime | None = None
    task_id: str | None = None
    reference_count: int = 0
    is_essential: bool = False
    pinned: bool = False
    resolved: bool = False
    superseded: bool = False
    file_path: str | None = None
    bond: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked_time("timestamp", self.timestamp)
        if self.last_referenced_at is not None:
            checked_time("last_referenced_at", self.last_referenced_at)
        if self.size < -1 or self.reference_count < 0:
            field = "reference_count" if self.reference_count < 0 else "size"
            raise InputError(
                f"content '{self.id}': {field} cannot be {getattr(self, field)}",
                hint="zero or more",
                field=field,
            )
        if self.size == -1:
            msgspec.structs.force_setattr(self, "size", rough_tokens(self.text))

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds of content that it is."""
        return frozenset((self.type, *self.tags))

    @property
    def last_used_at(self) -> datetime:
        """When it came in or was last referred to, whichever is later."""
        return max(self.timestamp, self.last_referenced_at or self.timestamp)


def item_from_segment(segment: ContextSegment, count: Count = rough_tokens) -> ContentItem:
    """Return the item of a segment; locked ones are essential."""
    touched = segment.last_touched_at > segment.created_at
    return ContentItem(
        id=segment.segment_id,
        type=_type_of(segment),
        text=segment.text,
        size=segment.tokens if segment.tokens is not None else count(segment.text),
        timestamp=segment.created_at,
        last_referenced_at=segment.last_touched_at if touched else None,
        task_id=segment.task_id,
        reference_count=segment.refcount,
        is_essential=segment.policy == "locked",
        pinned=segment.pinned,
        resolved=segment.failed and segment.superseded_by is not None,
        superseded=segment.superseded_by is not None,
        file_path=segment.file_path,
        bond=segment.bond_id,
        tags=segment.tags,
    )


def _type_of(segment: ContextSegment) -> str:
    if segment.role == "system" or segment.source == "system":
        return "system_prompt"
    if is_request(segment):
        return "user_message"
    if segment.failed:
        return "error"
    if segment.part in ("tool_call", "tool_result", "thinking", "media"):
        return segment.part  # a tool result that stands in a user message is not the user's word
    return f"{segment.role or 'agent'}_{segment.type}"


_KEYS = {"messages": "user_message", "current_file": "active_file", "last_error": "error"}


def items_from_context(
    context: Mapping[str, Any], now: datetime, count: Count = rough_tokens
) -> list[ContentItem]:
    """Return the items of a context as a mapping from kinds of content to texts.

    A value is a text, a message (`{"role", "content"}`), a list of them, or None; `messages` holds the
    conversation. All of it is taken as fresh.
    """
    items: list[ContentItem] = []
    for key, value in context.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        for number, entry in enumerate(values):
            if entry is not None:
                items.append(_from_entry(key, f"{key}-{number}", entry, now, count))
    return items


def _from_entry(key: str, name: str, entry: Any, now: datetime, count: Count) -> ContentItem:
    kind, text = _KEYS.get(key, key), entry
    if isinstance(entry, Mapping):
        kind = f"{entry['role']}_message" if "role" in entry else kind
        text = entry.get("content", "")
    if not isinstance(text, str):
        raise InputError(
            f"the context's '{key}' cannot be {type(text).__name__}",
            hint="give a text, a message with text, or a list of them",
            field=key,
        )
    return ContentItem(id=name, type=kind, text=text, size=count(text), timestamp=now)
