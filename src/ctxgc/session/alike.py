"""Histories that are alike: the same calls and results in the same places."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message


def calls_alike(before: Sequence[Message], now: Sequence[Message], start: int) -> bool:
    """Tell whether a history begins with the calls and results of another one, in the same places.

    Before `start` they are the same.
    """
    if len(now) < len(before):
        return False
    return all(
        old.message_id == new.message_id and tools_of(old) == tools_of(new)
        for old, new in zip(before[start:], now[start:], strict=False)
        if old is not new
    )


def tools_of(message: Message) -> list[tuple[str, str | None, bool]]:
    """Return the calls and results of a message, in order."""
    return [
        (part.kind, part.call_id, part.server_side)
        for part in message.parts
        if part.kind in ("tool_call", "tool_result")
    ]
