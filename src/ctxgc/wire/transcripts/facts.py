"""Facts: what a transcript says about its session, gathered while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

_LONGEST_NAME = 400
_NOTE = "ctxgc"


class Facts(msgspec.Struct, kw_only=True):
    """Who talked where, with what model, and what was sent beside the messages.

    `system` and `tools` hold the texts of the newest system prompt and tool schemas that the file
    shows; many show none. `context_limit` is the window that the agent reports.
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
        """Keep a short text under a name, unless it is none."""
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME:
            setattr(self, name, value)

    def note_time(self, at: datetime | None) -> None:
        """Keep the first and the last time."""
        if at is None:
            return
        self.first_at = at if self.first_at is None else min(self.first_at, at)
        self.last_at = at if self.last_at is None else max(self.last_at, at)

    def note_limit(self, value: object) -> None:
        """Keep the size of the window, if this is one."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            self.context_limit = value


def tokens_of(data: Mapping[str, Any], key: str) -> int:
    """Return a reported number of tokens; 0 where none is reported."""
    value = data.get(key)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value is not None else 0


def less(counts: Mapping[str, Any], keys: Iterable[str], tokens: int) -> dict[str, Any]:
    """Return reported numbers with so many tokens taken away, from the first of the keys on."""
    found = dict(counts)
    for key in keys:
        taken = min(tokens, tokens_of(counts, key))
        if taken:
            found[key] = tokens_of(counts, key) - taken
            tokens -= taken
    return found


def with_beside(record: dict[str, Any], beside: int) -> dict[str, Any]:
    """Return a record with the note that its usage was lowered, and what it has beside the messages."""
    return {**record, _NOTE: {"beside": beside}}


def beside_of(record: Mapping[str, Any]) -> int | None:
    """Return what a lowered usage has beside the messages; None if it is as its agent wrote it."""
    note = record.get(_NOTE)
    return tokens_of(note, "beside") if isinstance(note, Mapping) else None
