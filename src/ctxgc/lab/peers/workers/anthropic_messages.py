"""Chat messages in Anthropic's blocks, one for one, and back into the message they came from."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def to_blocks(message: Json) -> Json:
    """Return a message whose content is a list of blocks; a result stands in a user's message."""
    if message["role"] == "tool":
        return {"role": "user", "content": [_result(message)]}
    blocks = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    blocks += [_use(call) for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": blocks}


def from_blocks(blocks: list[Json], original: Json) -> Json:
    """Return the original message with what the blocks say instead."""
    if original["role"] == "tool":
        return {**original, "content": _text(blocks[0].get("content")) if blocks else ""}
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    left = {block["id"] for block in blocks if block["type"] == "tool_use"}
    calls = [call for call in original.get("tool_calls") or () if call["id"] in left]
    edited = {key: value for key, value in original.items() if key != "tool_calls"}
    edited["content"] = said if said or not calls else original.get("content")
    return {**edited, "tool_calls": calls} if calls else edited


def _result(message: Json) -> Json:
    return {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": message["content"],
    }


def _use(call: Json) -> Json:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {"raw": function["arguments"]}
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": function["name"],
        "input": arguments if isinstance(arguments, dict) else {"raw": arguments},
    }


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content or "")
