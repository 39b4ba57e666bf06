"""What all protocols need for an answer: ids, tokens, pieces of text and event lines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxgc.testing.breach import Json
from ctxgc.testing.model import ToolCall, Turn
from ctxgc.testing.serve.cache import CacheUse, Count

_PIECE = 24
CREATED = 1_790_000_000


class ServerIds:
    """The ids of one server, numbered, so that the same script gives the same ids."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self, start: str) -> str:
        """Return an unused id that begins with `start`."""
        return f"{start}{next(self._numbers):08d}"


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A turn with the ids of its calls, and the tokens read and generated."""

    turn: Turn
    calls: tuple[tuple[str, ToolCall], ...]
    use: CacheUse
    output_tokens: int
    thinking_tokens: int


def reply_to(turn: Turn, use: CacheUse, ids: ServerIds, start: str, count: Count) -> ServerReply:
    """Return the reply for a turn; calls without an id get one that starts with `start`."""
    calls = tuple((call.id or ids.new(start), call) for call in turn.tool_calls)
    thinking = count(turn.thinking) if turn.thinking else 0
    spoken = [turn.text, *(call.name + call.arguments_text() for call in turn.tool_calls)]
    output = thinking + sum(count(text) for text in spoken if text)
    return ServerReply(turn, calls, use, output, thinking)


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces in which a text is streamed; nothing for an empty text."""
    for at in range(0, len(text), _PIECE):
        yield text[at : at + _PIECE]


def event(data: Json | str, name: str | None = None) -> bytes:
    """Return one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=True)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


def typed(data: dict[str, Any]) -> bytes:
    """Return one server-sent event that is named by its own `type`."""
    return event(data, str(data["type"]))
