"""Whole answers of a provider, which are handed in by mistake for the messages inside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ctxgc.core.message import Format
from ctxgc.errors import MessageError

_CHAT = "append response.choices[0].message"
_RESPONSES = "extend with response.output"
_ANTHROPIC = 'append {"role": "assistant", "content": response.content}'


def refuse_answers(batch: Iterable[Any], asked: Format | None = None) -> None:
    """Raise MessageError, with a hint where the message is, for a whole answer among messages.

    Whole answers of Anthropic are messages with more fields, and recordings hold them: they pass where
    the format is named.
    """
    for each in batch:
        hint = _inside(each)
        if hint and not (hint == _ANTHROPIC and asked == "anthropic"):
            raise MessageError("this is a whole answer of a provider, not a message", hint=hint)


def _inside(thing: Any) -> str:
    """Return what to take of a whole answer; nothing for everything else."""
    if _has(thing, "stop_reason", "usage", "content", "role"):
        return _ANTHROPIC
    if _has(thing, "role"):
        return ""
    if _has(thing, "choices") or _has(thing, "message", "finish_reason"):
        return _CHAT
    return _RESPONSES if _has(thing, "object", "output") else ""


def _has(thing: Any, *fields: str) -> bool:
    if isinstance(thing, Mapping):
        return all(field in thing for field in fields)
    return hasattr(thing, "model_dump") and all(hasattr(thing, field) for field in fields)
