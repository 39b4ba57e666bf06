"""What a transcript says, item by item: messages, reported usage, and where a window ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from ctxgc.core.message import Format, Message
from ctxgc.errors import MessageError
from ctxgc.wire.messages import parse


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A provider message of a transcript, under an id that is the same at every reading.

    `line` is where it stands (the first is 1); `reply_id` the provider's id of the answer that it is a
    block of; `parent_id` the entry it follows. `is_side` marks the talk of a subagent, `is_aside` what
    the agent's program puts in by itself, `is_summary` what a compaction left of the window before.
    """

    message_id: str
    data: dict[str, Any]
    format: Format
    written_at: datetime | None = None
    line: int = 0
    reply_id: str | None = None
    parent_id: str | None = None
    model: str | None = None
    is_side: bool = False
    is_aside: bool = False
    is_summary: bool = False

    def message(self) -> Message | None:
        """Return the message in parts; None if its shape is not one that its provider has."""
        try:
            return parse(self.data, self.format, self.message_id)
        except MessageError:
            return None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider counted for one request; each prompt token is in one of the first three.

    A later usage with the same `reply_id` replaces the one before. `beside` is set where ctxgc lowered
    the record because it pruned the messages: what of the prompt is none of them.
    """

    uncached: int
    cache_read: int
    cache_write: int
    output: int
    line: int = 0
    reply_id: str | None = None
    written_at: datetime | None = None
    model: str | None = None
    is_side: bool = False
    beside: int | None = None

    @property
    def prompt(self) -> int:
        """All tokens of the request."""
        return self.uncached + self.cache_read + self.cache_write


def newest(usages: Iterable[Usage]) -> list[Usage]:
    """Return one usage for each answer: what was reported last, on the line that had it first."""
    found: dict[str, Usage] = {}
    for usage in usages:
        name = usage.reply_id or f"line-{usage.line}"
        line = found[name].line if name in found else usage.line
        found[name] = msgspec.structs.replace(usage, line=line)
    return list(found.values())


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The window ended here. What follows, and the messages in `kept`, make up the next one."""

    line: int = 0
    written_at: datetime | None = None
    trigger: str = ""
    tokens_before: int | None = None
    kept: tuple[str, ...] = ()


class Rollback(msgspec.Struct, frozen=True, kw_only=True):
    """The user took back the last turns: the messages of `turns` user turns are gone from the window."""

    turns: int
    line: int = 0


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A line that says nothing to the model but stands between two that do."""

    message_id: str
    parent_id: str | None = None
    line: int = 0
    is_side: bool = False


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read as it stands, and what became of it."""

    line: int
    what: str
    is_lost: bool = True


Item: TypeAlias = Entry | Usage | Compaction | Rollback | Link


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece of a transcript holds.

    `used` is how many bytes were read as whole lines; `passed_over` counts lines that say nothing to
    the model (titles, snapshots, a subagent's side talk), `broken` those that are no JSON.
    """

    entries: list[Entry]
    used: int
    passed_over: int = 0
    broken: int = 0


def moment(text: object) -> datetime | None:
    """Return the time that a transcript wrote, in UTC; None if it wrote none that can be read."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else None
