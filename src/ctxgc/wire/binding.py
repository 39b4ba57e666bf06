"""Thinking that is bound to everything in front of it (P2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.wire.edit import drop_parts

_MODEL = re.compile(r"claude-(fable|opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_BOUND_SINCE = {"fable": (5, 1), "opus": (5, 5), "sonnet": (5, 5), "haiku": (5, 5)}


def binds_thinking(model: str) -> bool:
    """Tell whether a model refuses thinking blocks behind an edit.

    Claude Fable from 5.1 on, Opus, Sonnet and Haiku from 5.5 on.
    """
    match = _MODEL.search(model)
    if match is None:
        return False
    return (int(match[2]), int(match[3] or 0)) >= _BOUND_SINCE[match[1]]


def strip_bound_thinking(messages: Sequence[Message], first_edited: int) -> list[Message]:
    """Return the history without the thinking from an edit on; what stands before it is untouched.

    A message that held nothing but thinking goes. Only Anthropic binds thinking.
    """
    stripped = [_without_thinking(message) for message in messages[first_edited:]]
    return [*messages[:first_edited], *(message for message in stripped if message is not None)]


def _without_thinking(message: Message) -> Message | None:
    if message.format != "anthropic":
        return message
    places = [index for index, part in enumerate(message.parts) if part.kind == "thinking"]
    return drop_parts(message, places)
