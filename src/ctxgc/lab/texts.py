"""What a chat message says, as plain texts: its content, and the decoded arguments of its calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def texts_of(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of a message, each by itself, in order.

    The arguments of a call are decoded from JSON and their values taken one by one: the escapes of
    the encoded form would stick to the identifiers beside them.
    """
    return tuple(text for text in (*_content(message.get("content")), *_calls(message)) if text)


def _content(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                yield part["text"]


def _calls(message: Mapping[str, Any]) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield str(function.get("name") or "")
            yield from _values(_decoded(function.get("arguments")))


def _decoded(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _values(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case bool() | None:
                continue
            case int() | float() as number:
                yield str(number)
            case list(items):
                waiting.extend(reversed(items))
            case dict(fields):
                waiting.extend(reversed(fields.values()))
