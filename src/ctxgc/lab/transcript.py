"""An agent's own transcript as one conversation in chat-completions messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ctxgc.core.message import Message, Part
from ctxgc.wire import parse_history, repair
from ctxgc.wire.transcripts import Entry, read_lines

Timed = tuple[dict[str, Any], float | None]


def read_transcript(data: bytes) -> tuple[list[dict[str, Any]], list[float] | None, int]:
    """Return the messages of a transcript, their times if all are known, and its broken lines.

    Blocks that one turn of the model wrote line by line become one message; what the chat form does
    not have (thinking, media) is left out; what would be refused is repaired.
    """
    reading = read_lines(data, is_end=True)
    timed = list(_merged(_chat(reading.entries)))
    messages = [message for message, _ in timed]
    fixed = repair(parse_history(messages, "openai"), "openai").messages
    same = [m.data for m in fixed] == messages
    times = [time for _, time in timed if time is not None]
    known = same and len(times) == len(messages) and bool(times)
    return [m.data for m in fixed], times if known else None, reading.broken


def _chat(entries: Iterable[Entry]) -> Iterator[Timed]:
    for entry in entries:
        message = entry.message()
        if message is None:
            continue
        time = None if entry.written_at is None else entry.written_at.timestamp()
        if entry.format == "openai":
            yield message.data, time
        else:
            yield from ((each, time) for each in chat_messages(message))


def chat_messages(message: Message) -> Iterator[dict[str, Any]]:
    """Yield a message of any format in the chat form: results first, each one by itself."""
    for part in message.parts:
        if part.kind == "tool_result":
            yield {"role": "tool", "tool_call_id": part.call_id, "content": part.text}
    text = message.text()
    calls = [_call(part) for part in message.parts if part.kind == "tool_call"]
    if calls:
        yield {"role": "assistant", "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": message.role, "content": text}


def _call(part: Part) -> dict[str, Any]:
    function = {"name": part.name or "", "arguments": part.text or "{}"}
    return {"id": part.call_id, "type": "function", "function": function}


def _merged(timed: Iterable[Timed]) -> Iterator[Timed]:
    """Join what the assistant said without hearing anything in between."""
    last: Timed | None = None
    for message, time in timed:
        if last is not None and last[0]["role"] == message["role"] == "assistant":
            last = _joined(last[0], message), last[1]
            continue
        if last is not None:
            yield last
        last = message, time
    if last is not None:
        yield last


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    said = [each["content"] for each in (first, second) if isinstance(each.get("content"), str)]
    calls = [*(first.get("tool_calls") or ()), *(second.get("tool_calls") or ())]
    joined = {**first, "content": "\n".join(filter(None, said)) or None}
    return {**joined, "tool_calls": calls} if calls else joined
