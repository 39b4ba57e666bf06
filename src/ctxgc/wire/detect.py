"""The format of a history, recognised by what only one format has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctxgc.core import FORMATS, Format
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
            "compaction",
            "fallback",
            "mcp_tool_listing",
            "tool_addition",
            "tool_removal",
        ),
        "anthropic",
    ),
}
_OF_A_SYSTEM_MESSAGE = ("clear_at", "output_config")


def detect_format(history: Iterable[Any]) -> Format:
    """Return the format of a history; plain text that fits all of them counts as `openai`.

    A history with marks of two formats raises a `MessageError` that names both.
    """
    first: dict[Format, int] = {}
    for index, message in enumerate(history):
        for mark in _marks(_read(message)):
            first.setdefault(mark, index)
    if len(first) > 1:
        places = " and ".join(
            f"{name} (message {first[name]})" for name in FORMATS if name in first
        )
        raise MessageError(
            f"the history mixes the formats {places}",
            hint="pass the format, and convert the messages of the other",
            field="format",
        )
    return next(iter(first), "openai")


def _read(message: Any) -> Any:
    """Return a message that came as JSON text as data; None if it is not JSON."""
    if not isinstance(message, str | bytes):
        return message
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


def _marks(message: Any) -> Iterator[Format]:
    role = _of(message, "role")
    if isinstance(_of(message, "type"), str) or (role is None and _of(message, "id") is not None):
        yield "responses"
        return
    if role in ("tool", "function") or _of(message, "tool_calls"):
        yield "openai"
    if role == "system" and any(_of(message, key) for key in _OF_A_SYSTEM_MESSAGE):
        yield "anthropic"
    content = _of(message, "content")
    for block in content if isinstance(content, list | tuple) else ():
        kind = _of(block, "type")
        if isinstance(kind, str) and kind.endswith("_tool_result"):
            yield "anthropic"
        elif isinstance(kind, str) and kind in _BLOCKS:
            yield _BLOCKS[kind]


def _of(thing: Any, field: str) -> Any:
    """Return a field of a message or a block, whether plain data or an SDK object."""
    if isinstance(thing, Mapping):
        return thing.get(field)
    return getattr(thing, field, None) if hasattr(thing, "model_dump") else None
