"""A provider message as plain data: what it says in parts, and the provider's own object untouched.

`data` is the object that the caller handed in. Nothing in ctxgc writes to it: an edit makes a new
message. `source` keeps the exact JSON bytes where the caller handed in bytes, so that number
spelling and key order survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
Format = Literal["openai", "responses", "anthropic"]
PartKind = Literal["text", "tool_call", "tool_result", "thinking", "media", "other"]
Origin = Literal["conversation", "gc_summary", "gc_notice"]

FORMATS: tuple[Format, ...] = ("openai", "responses", "anthropic")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing inside a message that is kept or moved by itself: it becomes one segment.

    `text` is what the model reads of it (a call's arguments as JSON text, a result's output).
    `path` is its place in `Message.data`, for example `("content", 2)`; the whole message is `()`.
    """

    kind: PartKind
    text: str = ""
    path: tuple[str | int, ...] = ()
    call_id: str | None = None
    name: str | None = None
    signed: bool = False
    is_error: bool = False
    media_tokens: int = 0
    server_side: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a history, in the order the provider wants it.

    In the `responses` format every input item is a message of its own.
    """

    message_id: str
    role: Role
    parts: tuple[Part, ...]
    data: dict[str, Any]
    format: Format
    source: bytes | None = None
    origin: Origin = "conversation"

    def calls(self) -> tuple[str, ...]:
        """Return the ids of the client-side tool calls that this message makes, in order."""
        return self._ids("tool_call")

    def results(self) -> tuple[str, ...]:
        """Return the ids of the client-side tool calls that this message answers, in order."""
        return self._ids("tool_result")

    def text(self) -> str:
        """Return the text parts joined by newlines."""
        return "\n".join(part.text for part in self.parts if part.kind == "text")

    def opens_turn(self) -> bool:
        """Return whether the user says something here; a tool result, summary or notice opens no turn."""
        if self.role != "user" or self.origin != "conversation":
            return False
        return any(part.kind != "tool_result" for part in self.parts)

    def _ids(self, kind: PartKind) -> tuple[str, ...]:
        ids = [
            part.call_id
            for part in self.parts
            if part.kind == kind and part.call_id is not None and not part.server_side
        ]
        return tuple(ids)


def common_prefix(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many leading items are the very same objects in both sequences."""
    differing = compress(count(), map(is_not, before, now))
    return next(differing, min(len(before), len(now)))
