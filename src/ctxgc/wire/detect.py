"""Which format a history is in, by what only one format has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctxgc.core.message import FORMATS, Format
from ctxgc.errors import MessageError

_BLOCKS: dict[str, Format] = {
    **dict.fromkeys(("image_url", "file"), "openai"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "responses"),
    **dict.fromkeys(
        (
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "image",
            "document",
            "server_tool_use",
            "mcp_tool_use",
            "container_upload",
            "search_result",
        ),
        "anthropic",
    ),
}


def detect_format(history: Iterable[Any]) -> Format:
    """Return the format of a history; plain text that fits all of them counts as `openai`.

    Marks of two formats in one history are a `MessageError` that names both.
    """
    first: dict[Format, int] = {}
    for index, message in enumerate(history):
        if isinstance(message, Mapping):
            for mark in _marks(message):
                first.setdefault(mark, index)
    if len(first) > 1:
        places = " and ".join(
            f"{name} (message {first[name]})" for name in FORMATS if name in first
        )
        raise MessageError(
            f"the history mixes the formats {places}",
            hint="name the format, and convert the messages of the other",
            field="format",
        )
    return next(iter(first), "openai")


def _marks(message: Mapping[str, Any]) -> Iterator[Format]:
    if isinstance(message.get("type"), str):
        yield "responses"
        return
    if message.get("role") in ("tool", "function") or message.get("tool_calls"):
        yield "openai"
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, Mapping) else None
        if isinstance(kind, str) and kind in _BLOCKS:
            yield _BLOCKS[kind]
