"""Anthropic's rules for tool calls: which results must stand where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ctxgc.testing.breach import Breach
from ctxgc.testing.turns import Block, Turn

_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def client_pairs(turns: list[Turn], complete: bool) -> Iterator[Breach]:
    """See that each turn of calls is answered at the very start of the next turn, once each."""
    yield from _unique(turns)
    for place, turn in enumerate(turns):
        before = turns[place - 1] if place else None
        if turn.role == "user":
            yield from _results(turn, before)
        elif place + 1 < len(turns):
            yield from _answered(turn, turns[place + 1])
        elif complete:
            yield from _answered(turn, Turn("user", turn.index + 1))


def server_pairs(turns: list[Turn]) -> Iterator[Breach]:
    """See that calls of the provider's own tools and their results stay together in their turn.

    A program whose calls the client answers gets its result in a later turn. What stands open at
    the end of the last answer is a paused turn, which the provider takes up again.
    """
    called: dict[str, Block] = {}
    known: set[str] = set()
    for place, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        asked = set()
        for block in turn.blocks:
            owner = _owner(block)
            asked.add(owner)
            if owner is not None and owner not in known:
                yield _no_program(block, owner)
            if block.type in _SERVER_CALLS:
                called[str(block.data.get("id"))] = block
                known.add(str(block.data.get("id")))
            elif block.type.endswith("_tool_result"):
                call_id = str(block.data.get("tool_use_id"))
                if called.pop(call_id, None) is None:
                    yield _no_server_call(block, call_id)
        paused = _paused(turn) if place == len(turns) - 1 else set()
        for call_id in [each for each in called if each not in asked and each not in paused]:
            yield _no_server_result(call_id, called.pop(call_id))


def _owner(block: Block) -> str | None:
    """Return the id of the program that made a call."""
    caller = block.data.get("caller")
    owner = caller.get("tool_id") if isinstance(caller, Mapping) else None
    return owner if isinstance(owner, str) else None


def _paused(turn: Turn) -> set[str]:
    """Return the calls behind the last text of a turn."""
    found: set[str] = set()
    for block in turn.blocks:
        if block.type == "text":
            found.clear()
        elif block.type in _SERVER_CALLS:
            found.add(str(block.data.get("id")))
    return found


def _unique(turns: list[Turn]) -> Iterator[Breach]:
    seen: set[str] = set()
    for block in (block for turn in turns for block in turn.blocks if block.type == "tool_use"):
        call_id = str(block.data.get("id"))
        if call_id in seen:
            text = f"{block.path}: `tool_use` ids must be unique"
            yield Breach("duplicate_id", text, block.path, index=block.index)
        seen.add(call_id)


def _results(turn: Turn, before: Turn | None) -> Iterator[Breach]:
    calls = set(_calls(before)) if before is not None else set()
    seen: set[str] = set()
    for block in turn.blocks:
        if block.type != "tool_result":
            continue
        call_id = str(block.data.get("tool_use_id"))
        if call_id not in calls:
            yield _unexpected(block, call_id)
        elif call_id in seen:
            text = (
                f"{block.path}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call_id}"
            )
            yield Breach("second_result", text, block.path, index=block.index)
        seen.add(call_id)


def _answered(turn: Turn, after: Turn) -> Iterator[Breach]:
    """See that the run of results that opens the next turn holds one for each call."""
    leading: set[str] = set()
    for block in after.blocks:
        if block.type != "tool_result":
            break
        leading.add(str(block.data.get("tool_use_id")))
    missing = [call_id for call_id in _calls(turn) if call_id not in leading]
    if missing:
        index = turn.blocks[-1].index
        text = (
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
        yield Breach("open_call", text, f"messages.{index}", index=index)


def _calls(turn: Turn) -> list[str]:
    return [str(block.data.get("id")) for block in turn.blocks if block.type == "tool_use"]


def _unexpected(block: Block, call_id: str) -> Breach:
    text = (
        f"{block.path}: unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
    )
    return Breach("orphan_result", text, block.path, index=block.index)


def _no_server_call(block: Block, call_id: str) -> Breach:
    text = (
        f"{block.path}: unexpected `tool_use_id` found in `{block.type}` blocks: {call_id}. Each "
        f"`{block.type}` block must have a corresponding `server_tool_use` block before it."
    )
    return Breach("orphan_result", text, block.path, index=block.index)


def _no_program(block: Block, owner: str) -> Breach:
    text = (
        f"{block.path}: the caller `{owner}` was not found in a `server_tool_use` block before it"
    )
    return Breach("orphan_call", text, block.path, index=block.index)


def _no_server_result(call_id: str, block: Block) -> Breach:
    name = block.data.get("name")
    text = (
        f"messages.{block.index}: `{name}` tool use with id `{call_id}` was found without a "
        f"corresponding `{name}_tool_result` block"
    )
    return Breach("open_call", text, f"messages.{block.index}", index=block.index)
