"""OpenAI chat completions: one message, its parts, and how each is edited."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ctxgc.core import Part, PartKind, Role
from ctxgc.wire.blocks import (
    Json,
    blocks_field,
    media_part,
    merge_text,
    object_field,
    result_text,
    role_field,
    text_field,
    wrong,
)
from ctxgc.wire.json_text import dump

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_THINKING = ("reasoning_content", "reasoning", "reasoning_details")
_MEDIA = {"image_url": "image", "input_audio": "audio", "file": "file"}


def read(data: Json) -> tuple[Role, tuple[Part, ...]]:
    """Return the role and the parts of a chat message."""
    role = role_field(data, _ROLES)
    if role == "tool":
        return role, (_result(data),)
    parts = [*_content(data)]
    if role == "assistant":
        parts = [*_thinking(data), *parts, *_spoken(data), *_calls(data)]
    return role, tuple(parts)


def _result(data: Json) -> Part:
    is_legacy = data["role"] == "function"
    call_id = (
        f"function:{text_field(data, 'name')}" if is_legacy else text_field(data, "tool_call_id")
    )
    text, tokens = result_text(data.get("content"), "content")
    name = data.get("name")
    return Part(
        kind="tool_result",
        text=text,
        call_id=call_id,
        name=name if isinstance(name, str) else None,
        media_tokens=tokens,
    )


def _content(data: Json) -> Iterator[Part]:
    content = data.get("content")
    if isinstance(content, str):
        yield Part(kind="text", text=content, path=("content",))
    elif content is not None:
        for index, block in enumerate(blocks_field(data, "content", wanted="a text or a list")):
            yield _block(block, ("content", index), f"content[{index}].")


def _block(block: Json, path: tuple[str | int, ...], where: str) -> Part:
    kind = block.get("type")
    if kind in ("text", "refusal"):
        return Part(kind="text", text=text_field(block, kind, where), path=path)
    if kind in _MEDIA:
        inner = block.get(kind)
        payload = inner if isinstance(inner, dict) else {"url": inner}
        found = (
            payload[key] for key in ("url", "data", "file_data", "file_id") if payload.get(key)
        )
        return media_part(_MEDIA[kind], next(found, ""), path)
    return Part(kind="other", text=dump(block), path=path)


def _thinking(data: Json) -> Iterator[Part]:
    for key in _THINKING:
        value = data.get(key)
        if value and isinstance(value, str):
            yield Part(kind="thinking", text=value, path=(key,))
        elif value and isinstance(value, list):
            yield Part(kind="thinking", text=dump(value), path=(key,), signed=True)


def _spoken(data: Json) -> Iterator[Part]:
    if isinstance(data.get("refusal"), str):
        yield Part(kind="text", text=data["refusal"], path=("refusal",))
    audio = data.get("audio")
    if isinstance(audio, dict):
        yield media_part("audio", audio.get("id", ""), ("audio",))


def _calls(data: Json) -> Iterator[Part]:
    if data.get("tool_calls") is not None:
        for index, call in enumerate(blocks_field(data, "tool_calls")):
            yield _call(call, ("tool_calls", index), f"tool_calls[{index}].")
    if data.get("function_call") is not None:
        function = object_field(data, "function_call")
        name = text_field(function, "name", "function_call.")
        arguments = text_field(function, "arguments", "function_call.")
        yield _part("tool_call", arguments, ("function_call",), f"function:{name}", name)


def _call(call: Json, path: tuple[str | int, ...], where: str) -> Part:
    call_id = text_field(call, "id", where)
    kind, field = ("custom", "input") if "custom" in call else ("function", "arguments")
    inner = object_field(call, kind, where)
    name = text_field(inner, "name", f"{where}{kind}.")
    text = text_field(inner, field, f"{where}{kind}.")
    return _part("tool_call", text, path, call_id, name)


def _part(kind: PartKind, text: str, path: tuple[str | int, ...], call_id: str, name: str) -> Part:
    return Part(kind=kind, text=text, path=path, call_id=call_id, name=name)


def set_text(data: Json, part: Part, text: str, *, keep_media: bool) -> Json:
    """Return the message with another text in one part; sibling fields stay."""
    if part.kind == "tool_result":
        return {**data, "content": merge_text(data.get("content"), text, keep_media=keep_media)}
    if len(part.path) == 1:
        return {**data, str(part.path[0]): text}
    blocks = list(data["content"])
    place = _index(part)
    key = "refusal" if blocks[place].get("type") == "refusal" else "text"
    blocks[place] = {**blocks[place], key: text}
    return {**data, "content": blocks}


def set_arguments(data: Json, part: Part, arguments: str) -> Json:
    """Return the message with other arguments in one call."""
    if part.path == ("function_call",):
        return {**data, "function_call": {**data["function_call"], "arguments": arguments}}
    calls = list(data["tool_calls"])
    place = _index(part)
    kind, field = ("custom", "input") if "custom" in calls[place] else ("function", "arguments")
    calls[place] = {**calls[place], kind: {**calls[place][kind], field: arguments}}
    return {**data, "tool_calls": calls}


def drop(data: Json, parts: Collection[Part]) -> Json:
    """Return the message without some parts; content that is gone becomes null."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        gone = {part.path[1:] for part in parts if part.path[0] == key}
        if not gone:
            kept[key] = value
        elif isinstance(value, list) and () not in gone:
            left = [each for index, each in enumerate(value) if (index,) not in gone]
            if left or key == "content":
                kept[key] = left or None
        elif key == "content":
            kept[key] = None
    return kept


def text_data(role: str, text: str) -> Json:
    """Return a new message with one text."""
    return {"role": role, "content": text}


def result_data(call: Part, text: str) -> Json:
    """Return a new message that answers a call."""
    if call.path == ("function_call",):
        return {"role": "function", "name": call.name, "content": text}
    return {"role": "tool", "tool_call_id": call.call_id, "content": text}


def _index(part: Part) -> int:
    place = part.path[1]
    if not isinstance(place, int):
        raise wrong("path", "an index", place)
    return place
