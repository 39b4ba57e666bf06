"""Content in S4's words: pieces with a type, a time and a size, made of texts, messages or segments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ctxgc.collector import kind_of
from ctxgc.core import ContextSegment, Message, checked_time, rough_tokens
from ctxgc.errors import InputError, MessageError
from ctxgc.invariants import groups
from ctxgc.tokens import message_tokens
from ctxgc.wire import detect_format, parse_history

Count = Callable[[str], int]
"""Returns the tokens of a text."""


Content = Mapping[Any, Any] | Iterable[Any]
"""A mapping from kinds of content to values, as S4 has it, or pieces or segments, by kind or as a list.

A value is a text, a message of a provider, any JSON value, a list of them, or None; `messages` holds the
conversation.
"""


class Given(NamedTuple):
    """Where a piece came from: its key and place in the context, the very value that was there, its name."""

    key: str
    place: int
    value: Any
    name: str
    listed: bool


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
        given: where it came from, if it was not made by hand.
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
    given: Given | None = None

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
    def value(self) -> Any:
        """What was given: a text, a message, a segment; else the piece itself."""
        return self if self.given is None else self.given.value

    def segment(self) -> ContextSegment:
        """Return the piece as the collector ranks it."""
        if isinstance(self.value, ContextSegment):
            return (
                self.value
                if self.value.tokens is not None
                else replace(self.value, tokens=self.size)
            )
        stale = self.resolved or self.superseded
        return ContextSegment(
            segment_id=self.id,
            text=self.text,
            type="note",
            tokens=self.size,
            created_at=self.timestamp,
            last_touched_at=max(self.timestamp, self.last_referenced_at or self.timestamp),
            task_id=self.task_id,
            refcount=self.reference_count,
            policy="locked" if self.is_essential else "partial",
            pinned=self.pinned,
            failed=self.resolved,
            superseded_by="later content" if stale else None,
            file_path=self.file_path,
            bond_id=self.bond,
            tags=(self.type, *self.tags),
        )


@dataclass(frozen=True)
class _Counter:
    count: Count
    name: str = "given"
    exact: bool = False


_KINDS = {
    "messages": "user_message", "last_user_message": "user_message",
    "current_file": "active_file", "last_error": "error", "error_context": "error",
}  # fmt: skip


def items_of(context: Content, now: datetime, count: Count = rough_tokens) -> list[ContentItem]:
    """Return the pieces of a context, in its order.

    What has no time of its own counts as fresh. A message that calls tools is bonded to their results.

    Raises:
        InputError: a value is neither text nor message nor JSON, or two pieces have the same id.
    """
    entries = _entries(context)
    messages = _conversation([entry for entry in entries if entry.key == "messages"])
    items = [_item(entry, messages.get(entry.place), now, count) for entry in entries]
    if len({item.id for item in items}) != len(items):
        raise InputError(
            "two pieces of content have the same id", hint="give each its own", field="id"
        )
    return items


def _entries(context: Content) -> list[Given]:
    named = context.items() if isinstance(context, Mapping) else ((None, context),)
    found: list[Given] = []
    for key, value in named:
        listed = not isinstance(value, (str, bytes, Mapping)) and isinstance(value, Iterable)
        values = [entry for entry in (value if listed else (value,)) if entry is not None]
        found += [
            Given(str(key), len(found) + n, entry, f"{key}-{n}", listed)
            for n, entry in enumerate(values)
        ]
    return found


def _item(entry: Given, message: _Said | None, now: datetime, count: Count) -> ContentItem:
    value = entry.value
    if isinstance(value, ContentItem):
        return value if value.given else replace(value, given=entry._replace(key=value.type))
    if isinstance(value, ContextSegment):
        return _from_segment(value, entry, count)
    if message is None and isinstance(value, Mapping) and "role" in value:
        message = _conversation([entry])[entry.place]
    if message is not None and not isinstance(value, str):
        return _from_message(message, entry, now, count)
    text = value if isinstance(value, str) else _as_text(entry)
    kind = _KINDS.get(entry.key, entry.key)
    return ContentItem(
        id=entry.name, type=kind, text=text, size=count(text), timestamp=now, given=entry
    )


def _from_segment(segment: ContextSegment, entry: Given, count: Count) -> ContentItem:
    kind = kind_of(segment)
    return ContentItem(
        id=segment.segment_id,
        type=kind,
        text=segment.text,
        size=segment.tokens if segment.tokens is not None else count(segment.text),
        timestamp=segment.created_at,
        task_id=segment.task_id,
        reference_count=segment.refcount,
        is_essential=segment.policy == "locked",
        pinned=segment.pinned,
        bond=segment.bond_id,
        tags=segment.tags,
        given=entry._replace(key=kind),
    )


class _Said(NamedTuple):
    message: Message
    bond: str | None


def _conversation(entries: Sequence[Given]) -> dict[int, _Said]:
    """Return the messages of a conversation by their place, those with a bond that live and die together."""
    raw = [_as_message(entry) for entry in entries]
    try:
        messages = parse_history(raw, detect_format(raw))
    except MessageError as error:
        where = f"the context's '{entries[0].key}': {error.message}"
        raise MessageError(where, hint=error.hint, **error.details) from None
    bonds: dict[int, str] = {}
    for group in groups(messages):
        if len(group) > 1:
            bonds.update(dict.fromkeys(group, entries[group[0]].name))
    return {
        entry.place: _Said(message, bonds.get(n))
        for n, (entry, message) in enumerate(zip(entries, messages, strict=True))
    }


def _as_message(entry: Given) -> dict[str, Any]:
    value = entry.value
    if isinstance(value, Mapping) and ("role" in value or "type" in value):
        return dict(value)
    return {"role": "user", "content": value if isinstance(value, str) else _as_text(entry)}


def _from_message(said: _Said, entry: Given, now: datetime, count: Count) -> ContentItem:
    message = said.message
    return ContentItem(
        id=entry.name,
        type=_kind_of_message(message),
        text="\n".join(part.text for part in message.parts),
        size=message_tokens(message, _Counter(count)),
        timestamp=now,
        bond=said.bond,
        given=entry,
    )


def _kind_of_message(message: Message) -> str:
    if message.role == "system":
        return "system_prompt"
    if any(part.is_error for part in message.parts):
        return "error"
    if message.role == "user" and message.opens_turn():
        return "user_message"
    return "tool_result" if message.results() else f"{message.role}_message"


def _as_text(entry: Given) -> str:
    value = entry.value
    if isinstance(value, Mapping) and isinstance(value.get("content"), str):
        return str(value["content"])
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"the context's '{entry.key}' cannot be {type(value).__name__}",
            hint="give a text, a message, a JSON value, or a list of them",
            field=entry.key,
        ) from None
