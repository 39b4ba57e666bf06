"""How many tokens a chat message has: counted like a session counts, once for each text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxgc.errors import MessageError
from ctxgc.tokens import counter_for
from ctxgc.tokens.messages import message_tokens
from ctxgc.wire import parse
from ctxgc.wire.json_text import dump


def message_weight(message: dict[str, Any]) -> int:
    """Return the tokens of one message; one of a shape that no provider takes weighs as its JSON."""
    counter = counter_for()
    try:
        return message_tokens(parse(message, "openai", "m"), counter)
    except MessageError:
        return counter.count(dump(message))


def total_weight(messages: Iterable[dict[str, Any]]) -> int:
    """Return the tokens of several messages."""
    return sum(map(message_weight, messages))
