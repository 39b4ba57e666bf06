"""Chat messages as LangChain's, and back; a message knows its number in the history by its id."""

from __future__ import annotations

from importlib import import_module
from typing import Any

Json = dict[str, Any]


def to_langchain(history: list[Json]) -> list[Any]:
    """Return the history in LangChain's classes."""
    convert = import_module("langchain_core.messages").convert_to_messages
    messages: list[Any] = convert(history)
    for number, message in enumerate(messages):
        message.id = str(number)
    return messages


def to_view(messages: list[Any], history: list[Json]) -> list[Any]:
    """Return the view: numbers of messages that are untouched, and results that were replaced."""
    return [_entry(message, history[int(message.id)]) for message in messages]


def _entry(message: Any, original: Json) -> Any:
    if message.content == (original.get("content") or ""):
        return int(message.id)
    return {**original, "content": message.content}
