"""The rules of Anthropic's messages API for a history, read from its refusals.

Written from the provider's side and on plain data: it shares nothing with the code that plans
and renders views, so that it can judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.breach import Body, Breach, Json, history_of
from ctxgc.testing.pairs_anthropic import client_pairs, server_pairs
from ctxgc.testing.signatures import SignatureBook
from ctxgc.testing.thinking_anthropic import thinking_rules
from ctxgc.testing.turns import Block, Turn, blocks_of, turns_of

MAX_BREAKPOINTS = 4
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


def check(body: Body, *, complete: bool = True, book: SignatureBook | None = None) -> list[Breach]:
    """Return what the messages API would refuse in a body or a list of messages, in order.

    With `complete=False` the calls of the last message may still wait for results. A `book` adds
    the rules that only the issuing server can know: signatures and what they are bound to.
    """
    messages = history_of(body, "messages")
    if not messages:
        return [Breach("empty_history", "messages: at least one message is required", "messages")]
    breaches = [breach for index, item in enumerate(messages) for breach in _message(index, item)]
    breaches += [*_last_and_empty(messages), *_cache_control(body)]
    turns = turns_of(messages)
    breaches += [*_first(turns), *client_pairs(turns, complete), *server_pairs(turns)]
    breaches += thinking_rules(turns, body if isinstance(body, Mapping) else {})
    return breaches + (book.check(body) if book is not None else [])


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


def _first(turns: list[Turn]) -> Iterator[Breach]:
    if turns and turns[0].role != "user":
        text = 'messages: first message must use the "user" role'
        yield Breach("first_role", text, "messages.0", index=turns[0].index)


def _cache_control(body: Body) -> Iterator[Breach]:
    found = sum(1 for block in cacheable(body) if block.get("cache_control"))
    if found > MAX_BREAKPOINTS:
        text = (
            f"A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. "
            f"Found {found}."
        )
        yield Breach("cache_control", text, "cache_control")


def cacheable(body: Body) -> Iterator[Json]:
    """Yield every block that may carry a cache breakpoint, in the order the provider reads them."""
    if isinstance(body, Mapping):
        for name in ("tools", "system"):
            blocks = body.get(name)
            if isinstance(blocks, Sequence) and not isinstance(blocks, str):
                yield from (block for block in blocks if isinstance(block, Mapping))
    for index, message in enumerate(history_of(body, "messages")):
        if isinstance(message, Mapping):
            yield from (block.data for block in blocks_of(index, message))
