"""An agent's own transcript as conversations in chat-completions messages, one for each window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ctxgc.core.message import Message, Part
from ctxgc.errors import MessageError, TranscriptError
from ctxgc.wire import parse, parse_history, repair
from ctxgc.wire.transcripts import Compaction, Item, Recorded, Transcript, open_transcript
from ctxgc.wire.transcripts.recorded import recorded

Timed = tuple[dict[str, Any], float | None]
Window = tuple[list[dict[str, Any]], list[float] | None]


def read_windows(path: Path) -> list[Window]:
    """Return each context window of a transcript: its messages, and their times if all are known.

    A compaction ends a window. What the chat form does not have (thinking, media) is left out; what
    a provider would refuse is repaired.

    Raises:
        TranscriptError: it is no transcript, or a line of it is damaged.
    """
    transcript = open_transcript(path)
    items = list(transcript.items())
    _check(transcript)
    ends = [place for place, item in enumerate(items) if isinstance(item, Compaction)]
    chained = transcript.kind == "claude_code"
    found = [_window(items[:end], chained=chained) for end in (*ends, len(items))]
    return [(messages, times) for messages, times in found if messages]


def _check(transcript: Transcript) -> None:
    lost = next((damage for damage in transcript.damage if damage.is_lost), None)
    if lost is not None:
        raise TranscriptError(
            f"{transcript.path}, line {lost.line}: {lost.what}",
            hint="take the line out, or give another transcript",
            path=str(transcript.path),
            line=lost.line,
        )


def _window(items: Sequence[Item], *, chained: bool) -> Window:
    timed = list(_chat(recorded(items, chained=chained)))
    messages = [message for message, _ in timed]
    fixed = [m.data for m in repair(parse_history(messages, "openai"), "openai").messages]
    times = [time for _, time in timed if time is not None]
    return fixed, times if len(times) == len(fixed) == len(messages) else None


def _chat(window: Iterable[Recorded]) -> Iterator[Timed]:
    for number, each in enumerate(window):
        time = None if each.written_at is None else each.written_at.timestamp()
        if each.format == "openai":
            yield each.data, time
            continue
        try:
            message = parse(each.data, each.format, str(number))
        except MessageError:
            continue
        yield from ((said, time) for said in chat_messages(message))


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
