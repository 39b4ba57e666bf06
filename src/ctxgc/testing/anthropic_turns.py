"""An Anthropic history as turns and blocks, and the rules for thinking blocks that need no signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxgc.testing.breach import Breach, Json


@dataclass(frozen=True, slots=True)
class Block:
    """One content block and its place: message `index`, position `place` in its content."""

    index: int
    place: int
    data: Json

    @property
    def type(self) -> str:
        """The block's type, or an empty string."""
        return str(self.data.get("type", ""))

    @property
    def path(self) -> str:
        """The address in the form that the provider's errors use."""
        return f"messages.{self.index}.content.{self.place}"


@dataclass(slots=True)
class RoleRun:
    """Consecutive messages of one role, which the provider reads as one."""

    role: str
    index: int
    blocks: list[Block] = field(default_factory=list)


def turns_of(messages: Sequence[Any]) -> list[RoleRun]:
    """Return the turns of a history; `system` entries do not separate turns."""
    turns: list[RoleRun] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant"):
            continue
        if not turns or turns[-1].role != role:
            turns.append(RoleRun(role, index))
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


# -- Rules for thinking blocks that need no knowledge of what was issued


THINKING = ("thinking", "redacted_thinking")


def thinking_rules(turns: list[RoleRun], body: Json) -> Iterator[Breach]:
    """Yield what is wrong with the shape and place of thinking blocks."""
    for turn in turns:
        for block in turn.blocks:
            if block.type in THINKING:
                yield from _shape(block)
    config = body.get("thinking")
    if isinstance(config, Mapping) and config.get("type") == "enabled":
        yield from _first_in_turn(turns)
        yield from _opens_the_loop(turns)


def _shape(block: Block) -> Iterator[Breach]:
    wanted = ("data",) if block.type == "redacted_thinking" else ("signature", "thinking")
    for key in wanted:
        if not isinstance(block.data.get(key), str):
            text = f"{block.path}.{block.type}.{key}: Field required"
            yield Breach("thinking_shape", text, f"{block.path}.{key}", index=block.index)


def _first_in_turn(turns: list[RoleRun]) -> Iterator[Breach]:
    for turn in turns:
        if not turn.blocks or not any(block.type in THINKING for block in turn.blocks):
            continue
        first = turn.blocks[0]
        if first.type not in THINKING:
            text = (
                f"{first.path}: If an assistant message contains any thinking blocks, the first "
                f"block must be `thinking` or `redacted_thinking`. Found `{first.type}`."
            )
            yield Breach("thinking_first", text, first.path, index=first.index)


def _opens_the_loop(turns: list[RoleRun]) -> Iterator[Breach]:
    """In an unfinished tool loop the last assistant turn must start with its thinking."""
    if len(turns) < 2 or turns[-1].role != "user" or not turns[-2].blocks:
        return
    last, first = turns[-2], turns[-2].blocks[0]
    in_loop = any(block.type == "tool_use" for block in last.blocks)
    if in_loop and first.type not in THINKING:
        text = (
            f"{first.path}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first.type}`. When `thinking` is enabled, a final `assistant` message must start "
            "with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` "
            "blocks). To avoid this requirement, disable `thinking`."
        )
        yield Breach("thinking_first", text, f"{first.path}.type", index=first.index)
