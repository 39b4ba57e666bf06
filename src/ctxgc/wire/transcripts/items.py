"""What a transcript holds, item by item: messages, reported usage, and where a window ended.

Also `SessionFacts` (what the file says about its session), and the token counts that agents and providers
report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from ctxgc.core import Format, Message
from ctxgc.errors import MessageError
from ctxgc.wire import parse

_LONGEST_NAME = 400
_NOTE = "ctxgc"


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A provider message of a transcript, under an id that is the same at every reading.

    `line` is its line (the first is 1); `reply_id` the provider's id of the answer that it is a block of;
    `parent_id` the entry it follows. `is_side` marks a subagent's message, `is_aside` one that the agent's
    program inserted by itself, `is_summary` what a compaction left of the window before.
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
        """Return the message in parts; None if its provider has no message of this shape."""
        try:
            return parse(self.data, self.format, self.message_id)
        except MessageError:
            return None

    def tools_called(self) -> list[str]:
        """Return the names of the tools that the model calls here."""
        if self.data.get("role", "assistant") != "assistant":
            return []
        message = self.message()
        calls = (p for p in message.parts if p.kind == "tool_call") if message is not None else ()
        return [call.name for call in calls if call.name is not None]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider counted for one request; each prompt token is in one of the first three.

    `cache_write_1h` of what was written to the cache stays there for an hour. A later usage with the same
    `reply_id` replaces the one before. `beside` is set if ctxgc lowered the record because it pruned the
    messages: the prompt tokens that are not messages. `compactions` are what the provider billed, besides
    these counts, for summaries of its own.
    """

    uncached: int
    cache_read: int
    cache_write: int
    output: int
    cache_write_1h: int = 0
    line: int = 0
    reply_id: str | None = None
    written_at: datetime | None = None
    model: str | None = None
    is_side: bool = False
    beside: int | None = None
    compactions: tuple[Usage, ...] = ()

    @property
    def prompt(self) -> int:
        """All tokens of the request."""
        return self.uncached + self.cache_read + self.cache_write


def latest_usages(usages: Iterable[Usage]) -> list[Usage]:
    """Return one usage per answer: the last one reported, on the line of the first."""
    found: dict[str, Usage] = {}
    for usage in usages:
        name = usage.reply_id or f"line-{usage.line}"
        line = found[name].line if name in found else usage.line
        found[name] = msgspec.structs.replace(usage, line=line)
    return list(found.values())


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The window ended here. The messages in `kept` and what follows make up the next one."""

    line: int = 0
    written_at: datetime | None = None
    trigger: str = ""
    tokens_before: int | None = None
    kept: tuple[str, ...] = ()


class Rollback(msgspec.Struct, frozen=True, kw_only=True):
    """The user undid the last turns: the messages of `turns` user turns left the window."""

    turns: int
    line: int = 0


class SilentLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line without a message that links two lines with one."""

    message_id: str
    parent_id: str | None = None
    line: int = 0
    is_side: bool = False


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read as it is, and what became of it."""

    line: int
    what: str
    is_lost: bool = True


Item: TypeAlias = TranscriptEntry | Usage | Compaction | Rollback | SilentLine


class TranscriptPiece(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece of a transcript holds.

    `used` is how many bytes were read as whole lines; `passed_over` counts lines without a message
    (titles, snapshots, a subagent's messages), `broken` those that are not JSON.
    """

    entries: list[TranscriptEntry]
    used: int
    passed_over: int = 0
    broken: int = 0


def parse_time(text: object) -> datetime | None:
    """Return a time as transcripts write it, in UTC; None if it cannot be read."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else None


class TranscriptFacts(msgspec.Struct, kw_only=True):
    """The session's id, project and model, and what was sent along with the messages.

    `system` and `tools` hold the newest system prompt and tool schemas in the file; many files have
    none. `context_limit` is the window that the agent reports.
    """

    session_id: str | None = None
    project: str | None = None
    version: str | None = None
    model: str | None = None
    title: str | None = None
    context_limit: int | None = None
    system: str = ""
    tools: str = ""
    first_at: datetime | None = None
    last_at: datetime | None = None

    def note(self, name: str, value: object) -> None:
        """Keep a short text under a name; anything else is ignored."""
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME:
            setattr(self, name, value)

    def note_time(self, at: datetime | None) -> None:
        """Keep the first and the last time."""
        if at is None:
            return
        self.first_at = at if self.first_at is None else min(self.first_at, at)
        self.last_at = at if self.last_at is None else max(self.last_at, at)

    def note_limit(self, value: object) -> None:
        """Keep the size of the window if it is a positive number."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            self.context_limit = value


def content_blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content of an Anthropic message as blocks; a text is one block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def tokens_of(data: Mapping[str, Any], key: str) -> int:
    """Return a reported number of tokens; 0 where none is reported."""
    value = data.get(key)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value is not None else 0


def anthropic_usage(said: Mapping[str, Any]) -> Usage:
    """Return the counts of a usage as Anthropic writes it.

    Compactions by the provider are listed as iterations, and are not in its other counts.
    """
    lives, listed = said.get("cache_creation"), said.get("iterations")
    hour = tokens_of(lives, "ephemeral_1h_input_tokens") if isinstance(lives, Mapping) else 0
    written = tokens_of(said, "cache_creation_input_tokens")
    steps = (
        [step for step in listed if isinstance(step, Mapping)] if isinstance(listed, list) else []
    )
    return Usage(
        uncached=tokens_of(said, "input_tokens"),
        cache_read=tokens_of(said, "cache_read_input_tokens"),
        cache_write=written,
        cache_write_1h=min(hour, written),
        output=tokens_of(said, "output_tokens"),
        compactions=tuple(anthropic_usage(s) for s in steps if s.get("type") == "compaction"),
    )


def subtract_tokens(counts: Mapping[str, Any], keys: Iterable[str], tokens: int) -> dict[str, Any]:
    """Return reported counts with so many tokens subtracted, from the first of the keys on."""
    found = dict(counts)
    for key in keys:
        taken = min(tokens, tokens_of(counts, key))
        if taken:
            found[key] = tokens_of(counts, key) - taken
            tokens -= taken
    return found


def with_beside(record: dict[str, Any], beside: int) -> dict[str, Any]:
    """Return a record with a note that its usage was lowered and how many of its tokens are not messages."""
    return {**record, _NOTE: {"beside": beside}}


def beside_of(record: Mapping[str, Any]) -> int | None:
    """Return the tokens of a lowered usage that are not messages; None if it is as its agent wrote it."""
    note = record.get(_NOTE)
    return tokens_of(note, "beside") if isinstance(note, Mapping) else None
