"""Anthropic's rules for thinking blocks that can be seen without knowing what was issued."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ctxgc.testing.breach import Breach, Json
from ctxgc.testing.turns import Block, Turn

THINKING = ("thinking", "redacted_thinking")


def thinking_rules(turns: list[Turn], body: Json) -> Iterator[Breach]:
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
    for field in wanted:
        if not isinstance(block.data.get(field), str):
            text = f"{block.path}.{block.type}.{field}: Field required"
            yield Breach("thinking_shape", text, f"{block.path}.{field}", index=block.index)


def _first_in_turn(turns: list[Turn]) -> Iterator[Breach]:
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


def _opens_the_loop(turns: list[Turn]) -> Iterator[Breach]:
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
