"""Short histories by hand: what a user, an agent and its tools say, in each format."""

from __future__ import annotations

from typing import Any

from ctxgc import wire
from ctxgc.core import Format, Message

Json = dict[str, Any]

ALL: tuple[Format, ...] = ("openai", "responses", "anthropic")


def user(text: str = "go") -> list[Json]:
    return [{"role": "user", "content": text}]


def says(text: str = "done") -> list[Json]:
    return [{"role": "assistant", "content": text}]


def calls(format: Format, *ids: str) -> list[Json]:  # noqa: A002
    """Return the message(s) of one batch of calls."""
    if format == "openai":
        function = {"name": "Bash", "arguments": "{}"}
        made = [{"id": each, "type": "function", "function": function} for each in ids]
        return [{"role": "assistant", "content": None, "tool_calls": made}]
    if format == "anthropic":
        blocks = [{"type": "tool_use", "id": each, "name": "Bash", "input": {}} for each in ids]
        return [{"role": "assistant", "content": blocks}]
    return [
        {"type": "function_call", "call_id": each, "name": "Bash", "arguments": "{}"}
        for each in ids
    ]


def results(format: Format, *ids: str, text: str = "ok") -> list[Json]:  # noqa: A002
    """Return the message(s) that answer calls, in the given order."""
    if format == "openai":
        return [{"role": "tool", "tool_call_id": each, "content": text} for each in ids]
    if format == "anthropic":
        blocks = [{"type": "tool_result", "tool_use_id": each, "content": text} for each in ids]
        return [{"role": "user", "content": blocks}]
    return [{"type": "function_call_output", "call_id": each, "output": text} for each in ids]


def thinks(text: str = "hm") -> Json:
    """Return a signed thinking block of Anthropic."""
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def parsed(format: Format, *parts: list[Json]) -> list[Message]:  # noqa: A002
    """Return the messages of all parts, with their places as ids."""
    history = [message for part in parts for message in part]
    return [wire.parse(data, format, f"m{place}") for place, data in enumerate(history)]
