"""An Anthropic history as the provider reads it: runs of one role, each block with its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxgc.testing.breach import Json


@dataclass(frozen=True, slots=True)
class Block:
    """One content block and where it stands: message `index`, position `place` in its content."""

    index: int
    place: int
    data: Json

    @property
    def type(self) -> str:
        """The block's type, or an empty text."""
        return str(self.data.get("type", ""))

    @property
    def path(self) -> str:
        """The address in the form that the provider's errors use."""
        return f"messages.{self.index}.content.{self.place}"


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role, which the provider reads as one."""

    role: str
    index: int
    blocks: list[Block] = field(default_factory=list)


def turns_of(messages: Sequence[Any]) -> list[Turn]:
    """Return the turns of a history; `system` entries stand between messages and part nothing."""
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant"):
            continue
        if not turns or turns[-1].role != role:
            turns.append(Turn(role, index))
        turns[-1].blocks.extend(blocks_of(index, message))
    return turns


def blocks_of(index: int, message: Json) -> Iterator[Block]:
    """Yield the content blocks of one message; a bare text is a block of type text."""
    content = message.get("content")
    if isinstance(content, str):
        yield Block(index, 0, {"type": "text", "text": content})
    elif isinstance(content, Sequence):
        for place, block in enumerate(content):
            if isinstance(block, Mapping):
                yield Block(index, place, block)
