"""The result of an analysis as plain data. Its JSON is the schema `ctxgc.analyze/2`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ctxgc.insight.bill import Bill
from ctxgc.insight.garbage import Garbage
from ctxgc.insight.replay import CacheBreak
from ctxgc.insight.survey import UserTurn
from ctxgc.wire.transcripts import Damage

SCHEMA = "ctxgc.analyze/2"


class About(msgspec.Struct, kw_only=True):
    """What identifies the session."""

    path: str
    kind: str
    format: str
    bytes: int
    session_id: str | None = None
    project: str | None = None
    model: str | None = None
    version: str | None = None
    title: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None


class UsageRow(msgspec.Struct, kw_only=True):
    """One source, tool or file: its tokens in the whole session and in the window now."""

    name: str
    tokens: int
    window_tokens: int = 0
    count: int = 0
    failed: int = 0
    largest: int = 0


class WindowNow(msgspec.Struct, kw_only=True):
    """The context window as it is at the end. `beside` are the system prompt and the tools."""

    number: int
    limit: int
    tokens: int
    percent: float
    zone: str
    messages: int
    beside: int


class FillPoint(msgspec.Struct, kw_only=True):
    """How full the window was at a request."""

    request: int
    line: int
    window: int
    tokens: int
    percent: float
    zone: str
    at: datetime | None = None


class Cache(msgspec.Struct, kw_only=True):
    """What the provider's cache did; `is_reported` is False if the file does not say."""

    is_reported: bool
    read: int = 0
    written: int = 0
    uncached: int = 0
    hit_percent: float = 0.0
    lost: int = 0
    breaks: list[CacheBreak] = []


class PrunePreview(msgspec.Struct, frozen=True, kw_only=True):
    """What `ctxgc prune` would do to the session now: the size of its window before and after."""

    tokens_before: int
    tokens_after: int
    percent_less: float


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What to do next, and the command that does it."""

    text: str
    command: str = ""


class Insight(msgspec.Struct, kw_only=True):
    """Everything that `ctxgc analyze` shows.

    Tokens are the provider's if `scale` is known (one of ours is `scale` of its tokens), else those of
    o200k.
    """

    schema: str = SCHEMA
    about: About
    scale: float | None
    messages: int
    tokens: int
    requests: int
    window: WindowNow
    sources: list[UsageRow]
    tools: list[UsageRow]
    files: list[UsageRow]
    turns: list[UserTurn]
    fill: list[FillPoint]
    zones: dict[str, int]
    compactions: int
    garbage: Garbage
    bill: Bill
    cache: Cache
    damaged: int
    damage: list[Damage]
    prune: PrunePreview | None = None
    advice: list[Advice] = []
    notes: list[str] = []

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
