"""Anthropic messages: one message, its blocks, and how each is edited."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ctxgc.core import Part, Role
from ctxgc.errors import MessageError
from ctxgc.wire.blocks import (
    Json,
    blocks_field,
    is_text_document,
    media_part,
    merge_text,
    payload_of,
    result_text,
    role_field,
    shown,
    text_field,
)
from ctxgc.wire.json_text import dump

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_HOME = {
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "mcp_tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
_MEDIA = ("image", "document")


def read(data: Json) -> tuple[Role, tuple[Part, ...]]:
    """Return the role and the parts of an Anthropic message."""
    role = role_field(data, _ROLES)
    content = data.get("content")
    if isinstance(content, str):
        return role, (Part(kind="text", text=content, path=("content",)),)
    if content is None and role == "system" and data.get("output_config"):
        return role, ()
    blocks = blocks_field(data, "content", wanted="a text or a list")
    return role, tuple(_block(block, index, role) for index, block in enumerate(blocks))


def _block(block: Json, index: int, role: Role) -> Part:
    where, path = f"content[{index}].", ("content", index)
    kind = text_field(block, "type", where)
    home = _HOME.get(kind, role)
    if home != role:
        raise MessageError(
            f"`{where}type` {kind!r} is not allowed in a {role} message",
            hint=f"it belongs in a message with the role {home!r}",
            field=f"{where}type",
        )
    if kind == "text":
        return Part(kind="text", text=text_field(block, "text", where), path=path)
    if kind in ("thinking", "redacted_thinking"):
        return _thinking(block, path)
    if kind == "document" and is_text_document(block):
        text, tokens = shown(block)
        return Part(kind="media", text=text, path=path, media_tokens=tokens)
    if kind in _MEDIA:
        payload, _, media_type = payload_of(block)
        return media_part(kind, payload, path, media_type)
    return _tool(kind, block, path, where)


def _thinking(block: Json, path: tuple[str | int, ...]) -> Part:
    text = block.get("thinking", block.get("data"))
    signed = bool(block.get("signature") or block.get("data"))
    return Part(
        kind="thinking", text=text if isinstance(text, str) else "", path=path, signed=signed
    )


def _tool(kind: str, block: Json, path: tuple[str | int, ...], where: str) -> Part:
    if kind == "tool_result":
        return _result(block, path, where)
    if kind.endswith("tool_use"):
        return Part(
            kind="tool_call",
            text=dump(block.get("input", {})),
            path=path,
            call_id=text_field(block, "id", where),
            name=text_field(block, "name", where),
            server_side=kind != "tool_use",
        )
    if kind.endswith("_tool_result"):
        text, tokens = shown(block.get("content"))
        return Part(
            kind="tool_result",
            text=text,
            media_tokens=tokens,
            path=path,
            call_id=text_field(block, "tool_use_id", where),
            is_error=block.get("is_error") is True,
            server_side=True,
        )
    signed = any(isinstance(block.get(key), str) for key in ("signature", "encrypted_content"))
    return Part(kind="other", text=dump(block), path=path, name=kind, signed=signed)


def _result(block: Json, path: tuple[str | int, ...], where: str) -> Part:
    text, tokens = result_text(block.get("content"), f"{where}content")
    return Part(
        kind="tool_result",
        text=text,
        path=path,
        call_id=text_field(block, "tool_use_id", where),
        is_error=block.get("is_error") is True,
        media_tokens=tokens,
    )


def set_text(data: Json, part: Part, text: str, *, keep_media: bool) -> Json:
    """Return the message with another text in one part; sibling fields stay."""
    if part.path == ("content",):
        return {**data, "content": text}
    block = _at(data, part)
    if part.kind == "tool_result":
        content = merge_text(block.get("content"), text, keep_media=keep_media)
        return _put(data, part, {**block, "content": content})
    return _put(data, part, {**block, "text": text})


def set_input(data: Json, part: Part, value: Json) -> Json:
    """Return the message with another input in one call."""
    return _put(data, part, {**_at(data, part), "input": value})


def drop(data: Json, parts: Collection[Part]) -> Json:
    """Return the message without some blocks; thinking that would then come last is dropped too."""
    if isinstance(data["content"], str):
        return {**data, "content": []}
    gone = {part.path[1] for part in parts}
    kept = [block for index, block in enumerate(data["content"]) if index not in gone]
    while kept and kept[-1].get("type") in ("thinking", "redacted_thinking"):
        kept.pop()
    return {**data, "content": kept}


def text_data(role: str, text: str) -> Json:
    """Return a new message with one text."""
    return {"role": role, "content": [{"type": "text", "text": text}]}


def result_data(call: Part, text: str) -> Json:
    """Return a new user message that answers a call with an error."""
    block = {"type": "tool_result", "tool_use_id": call.call_id, "content": text, "is_error": True}
    return {"role": "user", "content": [block]}


def _at(data: Json, part: Part) -> Json:
    block: Any = data
    for step in part.path:
        block = block[step]
    return dict(block)


def _put(data: Json, part: Part, block: Json) -> Json:
    blocks = [block if ("content", i) == part.path else b for i, b in enumerate(data["content"])]
    return {**data, "content": blocks}
