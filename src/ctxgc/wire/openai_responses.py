"""OpenAI Responses: every input item is a message of its own.

A call and its result are recognised by the ending of their type (`_call`, `_output`) and a `call_id`,
so that tools which the provider adds later pair as well. Calls without a `call_id` and programs run on
the provider's side.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ctxgc.core import Part, Role
from ctxgc.errors import MessageError
from ctxgc.wire.blocks import (
    Json,
    blocks_field,
    describe,
    media_part,
    merge_text,
    payload_of,
    result_text,
    role_field,
    shown,
    text_field,
    wrong,
)
from ctxgc.wire.json_text import dump

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_TEXT = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_SETTINGS = ("additional_tools", "configuration_update", "compaction_trigger")
_MEDIA = {"input_image": "image", "input_file": "file", "input_audio": "audio"}


def read(data: Json) -> tuple[Role, tuple[Part, ...]]:
    """Return the role and the parts of an input item."""
    kind = _kind(data)
    if not isinstance(kind, str):
        raise MessageError(
            "`type` of the item must be a string", hint="give the type of the item", field="type"
        )
    if kind == "message":
        return _message(data)
    if kind == "reasoning":
        return "assistant", (_reasoning(data),)
    if kind == "mcp_approval_response":
        return "tool", (_approval(data),)
    if kind.endswith("_output"):
        part = _output(kind, data)
        return "assistant" if part.server_side else "tool", (part,)
    return "system" if kind in _SETTINGS else "assistant", (_action(kind, data),)


def _kind(data: Json) -> Any:
    """Return the type of an item; messages and references may omit it."""
    if data.get("type") is not None:
        return data["type"]
    return "item_reference" if "role" not in data and "id" in data else "message"


def _message(data: Json) -> tuple[Role, tuple[Part, ...]]:
    role = role_field(data, _ROLES)
    content = data.get("content")
    if isinstance(content, str):
        return role, (Part(kind="text", text=content, path=("content",)),)
    blocks = blocks_field(data, "content", wanted="a text or a list")
    return role, tuple(_block(block, index) for index, block in enumerate(blocks))


def _block(block: Json, index: int) -> Part:
    kind, path = block.get("type"), ("content", index)
    if isinstance(kind, str) and kind in _TEXT:
        text = text_field(block, _TEXT[kind], f"content[{index}].")
        return Part(kind="text", text=text, path=path)
    if isinstance(kind, str) and kind in _MEDIA:
        payload, _, media_type = payload_of(block)
        return media_part(_MEDIA[kind], payload, path, media_type)
    return Part(kind="other", text=dump(block), path=path)


def _reasoning(data: Json) -> Part:
    texts = [
        text_field(block, "text", f"{key}[{index}].")
        for key in ("summary", "content")
        if data.get(key) is not None
        for index, block in enumerate(blocks_field(data, key))
    ]
    return Part(
        kind="thinking",
        text="\n".join(texts),
        signed=isinstance(data.get("encrypted_content"), str),
    )


def _approval(data: Json) -> Part:
    return Part(
        kind="tool_result",
        text=dump(data.get("approve")),
        call_id=text_field(data, "approval_request_id"),
        server_side=True,
    )


def _output(kind: str, data: Json) -> Part:
    if kind == "program_output" or (kind == "tool_search_output" and data.get("call_id") is None):
        return Part(
            kind="tool_result", text=dump(data), call_id=_id(data, "call_id"), server_side=True
        )
    # A local shell names the call in `id`, all others in `call_id`. A function's output may come
    # without a call, from a tool that was not called in this history.
    call_id = data.get("call_id")
    if call_id is None and kind == "function_call_output":
        return Part(kind="other", text=dump(data), name=kind)
    if call_id is None and kind == "local_shell_call_output":
        call_id = data.get("id")
    if not isinstance(call_id, str):
        raise wrong("call_id", "a string", call_id)
    output = data.get("tools") if kind == "tool_search_output" else data.get("output")
    text, tokens = result_text(_flat(output), "output")
    return Part(kind="tool_result", text=text, call_id=call_id, media_tokens=tokens)


def _flat(output: Any) -> Any:
    """Return outputs that are neither text nor blocks (numbers, nested lists) as JSON text."""
    if output is None or isinstance(output, str | dict):
        return output
    is_blocks = isinstance(output, list) and all(isinstance(each, dict) for each in output)
    return output if is_blocks else dump(output)


def _action(kind: str, data: Json) -> Part:
    name = data.get("name")
    name = name if isinstance(name, str) else kind
    if kind in ("function_call", "custom_tool_call"):
        field = "arguments" if kind == "function_call" else "input"
        text, call_id = text_field(data, field), text_field(data, "call_id")
        return Part(kind="tool_call", text=text, call_id=call_id, name=name)
    if kind in ("program", "mcp_approval_request") or kind.endswith("_call"):
        return _other_call(kind, data, name)
    signed = isinstance(data.get("encrypted_content"), str)
    return Part(kind="other", text=dump(data), name=kind, signed=signed)


def _other_call(kind: str, data: Json, name: str) -> Part:
    call_id = _id(data, "call_id")
    if call_id is not None and kind != "program":
        return Part(kind="tool_call", text=dump(data), call_id=call_id, name=name)
    if kind not in ("program", "tool_search_call"):
        call_id = _id(data, "id")
    text, tokens = shown(data)
    if kind == "image_generation_call" and isinstance(data.get("result"), str):
        text, tokens = describe("image", data["result"])
    return Part(
        kind="tool_call",
        text=text,
        call_id=call_id,
        name=name,
        media_tokens=tokens,
        server_side=True,
    )


def _id(data: Json, key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def set_text(data: Json, part: Part, text: str, *, keep_media: bool) -> Json:
    """Return the item with another text in one part; sibling fields stay."""
    if part.kind == "tool_result":
        return {**data, "output": merge_text(data.get("output"), text, keep_media=keep_media)}
    if part.path == ("content",):
        return {**data, "content": text}
    blocks = [
        {**block, _TEXT[block["type"]]: text} if ("content", index) == part.path else block
        for index, block in enumerate(data["content"])
    ]
    return {**data, "content": blocks}


def set_arguments(data: Json, arguments: str) -> Json:
    """Return the call with other arguments."""
    return {**data, "arguments" if "arguments" in data else "input": arguments}


def drop(data: Json, parts: Collection[Part]) -> Json:
    """Return the message without some parts of its content."""
    gone = {part.path for part in parts}
    if ("content",) in gone:
        return {**data, "content": []}
    kept = [block for i, block in enumerate(data["content"]) if ("content", i) not in gone]
    return {**data, "content": kept}


def text_data(role: str, text: str) -> Json:
    """Return a new item with one text."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def result_data(call: Part, text: str, call_type: str) -> Json:
    """Return a new item that answers a call of the given type."""
    kind = "custom_tool_call_output" if call_type == "custom_tool_call" else "function_call_output"
    return {"type": kind, "call_id": call.call_id, "output": text}
