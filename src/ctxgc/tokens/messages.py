"""What a message costs: its parts, and what every provider adds around them."""

from __future__ import annotations

from ctxgc.core.message import Message, Part
from ctxgc.tokens.counter import TokenCounter

MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 6
RESULT_OVERHEAD = 4


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Return the tokens of one part: what the model reads of it, its media, and its frame."""
    tokens = counter.count(part.text) + part.media_tokens
    if part.kind == "tool_call":
        return tokens + counter.count(part.name or "") + CALL_OVERHEAD
    return tokens + (RESULT_OVERHEAD if part.kind == "tool_result" else 0)


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Return the tokens of a whole message."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)
