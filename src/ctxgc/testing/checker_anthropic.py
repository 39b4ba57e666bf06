"""The rules of Anthropic's messages API for a history, read from its refusals.

Written from the provider's side and on plain data: it shares nothing with the code that plans
and renders views, so that it can judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.anthropic_turns import Block, RoleRun, blocks_of, thinking_rules, turns_of
from ctxgc.testing.breach import Body, Breach, Json, history_of
from ctxgc.testing.signatures import ThinkingSignatures

# -- Tool calls: which results must be where


_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def _client_pairs(turns: list[RoleRun], complete: bool) -> Iterator[Breach]:
    """Check that each turn of calls is answered at the very start of the next turn, once each."""
    yield from _unique(turns)
    for place, turn in enumerate(turns):
        before = turns[place - 1] if place else None
        if turn.role == "user":
            yield from _results(turn, before)
        elif place + 1 < len(turns):
            yield from _answered(turn, turns[place + 1])
        elif complete:
            yield from _answered(turn, RoleRun("user", turn.index + 1))


def _server_pairs(turns: list[RoleRun]) -> Iterator[Breach]:
    """Check that calls of the provider's own tools and their results are in the same turn.

    A program whose calls the client answers gets its result in a later turn. What is open at the end
    of the last answer is a paused turn, which the provider resumes.
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


def _paused(turn: RoleRun) -> set[str]:
    """Return the calls after the last text of a turn."""
    found: set[str] = set()
    for block in turn.blocks:
        if block.type == "text":
            found.clear()
        elif block.type in _SERVER_CALLS:
            found.add(str(block.data.get("id")))
    return found


def _unique(turns: list[RoleRun]) -> Iterator[Breach]:
    seen: set[str] = set()
    for block in (block for turn in turns for block in turn.blocks if block.type == "tool_use"):
        call_id = str(block.data.get("id"))
        if call_id in seen:
            text = f"{block.path}: `tool_use` ids must be unique"
            yield Breach("duplicate_id", text, block.path, index=block.index)
        seen.add(call_id)


def _results(turn: RoleRun, before: RoleRun | None) -> Iterator[Breach]:
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


def _answered(turn: RoleRun, after: RoleRun) -> Iterator[Breach]:
    """Check that the results at the start of the next turn include one for each call."""
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


def _calls(turn: RoleRun) -> list[str]:
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


_MAX_BREAKPOINTS = 4
_TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_SHARED = ("text", "image", "document", "search_result", "container_upload")
_TOOL_CHANGES = ("tool_addition", "tool_removal")
_ROLE_OF = {
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "mcp_tool_use": "assistant",
    "tool_result": "user",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "compaction": "assistant",
    "fallback": "assistant",
    "mcp_tool_listing": "assistant",
}


def check(
    body: Body, *, complete: bool = True, signatures: ThinkingSignatures | None = None
) -> list[Breach]:
    """Return what the messages API would refuse in a body or a list of messages, in order.

    With `complete=False` the calls of the last message may still wait for results. `signatures`
    adds the rules that only the issuing server can check: signatures and what they are bound to.
    """
    messages = history_of(body, "messages")
    if not messages:
        return [Breach("empty_history", "messages: at least one message is required", "messages")]
    breaches = [breach for index, item in enumerate(messages) for breach in _message(index, item)]
    breaches += [*_last_and_empty(messages), *_cache_control(body)]
    turns = turns_of(messages)
    breaches += [*_first(turns), *_client_pairs(turns, complete), *_server_pairs(turns)]
    breaches += thinking_rules(turns, body if isinstance(body, Mapping) else {})
    return breaches + (signatures.check(body) if signatures is not None else [])


def _message(index: int, message: Any) -> Iterator[Breach]:
    where = f"messages.{index}"
    if not isinstance(message, Mapping):
        yield Breach("shape", f"{where}: Input should be a valid dictionary", where, index=index)
        return
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        text = f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
        yield Breach("role", text, where, index=index)
    if content is None and not (role == "system" and message.get("output_config")):
        yield Breach("shape", f"{where}.content: Field required", where, index=index)
    elif content is None:
        return
    elif not isinstance(content, str | Sequence):
        text = f"{where}.content: Input should be a valid list"
        yield Breach("shape", text, where, index=index)
    elif not isinstance(content, str) and not all(isinstance(b, Mapping) for b in content):
        text = f"{where}.content: Input should be a valid dictionary"
        yield Breach("shape", text, where, index=index)
    elif content != "":
        for block in blocks_of(index, message):
            yield from _block(str(role), block)


def _block(role: str, block: Block) -> Iterator[Breach]:
    owner = _ROLE_OF.get(block.type, "assistant" if block.type.endswith("_tool_result") else role)
    known = (*_SHARED, *_TOOL_CHANGES, *_ROLE_OF)
    if block.type not in known and not block.type.endswith("_tool_result"):
        text = (
            f"{block.path}: Input tag '{block.type}' found using 'type' does not match any of the "
            "expected tags"
        )
        yield Breach("block_type", text, block.path, index=block.index)
    elif role == "system" and block.type not in ("text", *_TOOL_CHANGES):
        text = f"messages.{block.index}: `{block.type}` blocks cannot be in `system` messages"
        yield Breach("block_role", text, block.path, index=block.index)
    elif owner != role:
        text = f"messages.{block.index}: `{block.type}` blocks can only be in `{owner}` messages"
        yield Breach("block_role", text, block.path, index=block.index)
    elif block.type == "text":
        yield from _text(block)
    elif block.type == "tool_use":
        yield from _tool_use(block)
    elif block.type == "tool_result" and not isinstance(block.data.get("tool_use_id"), str):
        text = f"{block.path}.tool_result.tool_use_id: Field required"
        yield Breach("shape", text, block.path, index=block.index)


def _text(block: Block) -> Iterator[Breach]:
    text = block.data.get("text")
    if not isinstance(text, str):
        message = f"{block.path}.text.text: Input should be a valid string"
        yield Breach("shape", message, block.path, index=block.index)
    elif not text:
        message = "messages: text content blocks must be non-empty"
        yield Breach("empty_text", message, block.path, index=block.index)
    elif not text.strip():
        message = "messages: text content blocks must contain non-whitespace text"
        yield Breach("empty_text", message, block.path, index=block.index)


def _tool_use(block: Block) -> Iterator[Breach]:
    where = f"{block.path}.tool_use"
    call_id = block.data.get("id")
    if not isinstance(call_id, str) or not _TOOL_ID.match(call_id):
        text = f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        yield Breach("tool_id", text, f"{where}.id", index=block.index)
    if not isinstance(block.data.get("name"), str):
        yield Breach("shape", f"{where}.name: Field required", block.path, index=block.index)
    if not isinstance(block.data.get("input"), Mapping):
        text = f"{where}.input: Input should be a valid dictionary"
        yield Breach("arguments", text, f"{where}.input", index=block.index)


def _last_and_empty(messages: Sequence[Any]) -> Iterator[Breach]:
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        content, role = message.get("content"), message.get("role")
        empty = isinstance(content, Sequence) and not content
        if empty and not (index == last and role == "assistant"):
            text = (
                f"messages.{index}: all messages must have non-empty content except for the "
                "optional final assistant message"
            )
            yield Breach("empty_content", text, f"messages.{index}", index=index)
    if _ends_in_space(messages[last]):
        text = "messages: final assistant content cannot end with trailing whitespace"
        yield Breach("trailing_space", text, f"messages.{last}", index=last)


def _ends_in_space(message: Any) -> bool:
    if not isinstance(message, Mapping) or message.get("role") != "assistant":
        return False
    final = list(blocks_of(0, message))[-1:]
    text = final[0].data.get("text") if final and final[0].type == "text" else None
    return isinstance(text, str) and text != text.rstrip() and bool(text.strip())


def _first(turns: list[RoleRun]) -> Iterator[Breach]:
    if turns and turns[0].role != "user":
        text = 'messages: first message must use the "user" role'
        yield Breach("first_role", text, "messages.0", index=turns[0].index)


def _cache_control(body: Body) -> Iterator[Breach]:
    found = sum(1 for block in _cacheable(body) if block.get("cache_control"))
    if found > _MAX_BREAKPOINTS:
        text = (
            f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {found}."
        )
        yield Breach("cache_control", text, "cache_control")


def _cacheable(body: Body) -> Iterator[Json]:
    """Yield every block that may carry a cache breakpoint, in the order the provider reads them."""
    if isinstance(body, Mapping):
        for name in ("tools", "system"):
            blocks = body.get(name)
            if isinstance(blocks, Sequence) and not isinstance(blocks, str):
                yield from (block for block in blocks if isinstance(block, Mapping))
    for index, message in enumerate(history_of(body, "messages")):
        if isinstance(message, Mapping):
            yield from (block.data for block in blocks_of(index, message))
