"""What a transcript says: one message per entry, with the time it was written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ctxgc.core.message import Format, Message
from ctxgc.errors import MessageError
from ctxgc.wire.messages import parse


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A provider message of a transcript, under an id that is the same at every reading."""

    message_id: str
    data: dict[str, Any]
    format: Format
    written_at: datetime | None = None

    def message(self) -> Message | None:
        """Return the message in parts; None if its shape is not one that its provider has."""
        try:
            return parse(self.data, self.format, self.message_id)
        except MessageError:
            return None


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
