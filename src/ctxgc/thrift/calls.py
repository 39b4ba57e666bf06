"""Calls: the old text of an edit is gone from the file once the edit is made, and need not be sent again.

The newest call is shortened before it is sent back for the first time, so nothing that the provider has
cached changes. Lines that hold a name which nothing else in the view holds stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ctxgc.core.message import Message
from ctxgc.core.text import Text
from ctxgc.core.tombstone import OPENING
from ctxgc.wire.tools import strings_of

OLD_TEXT = frozenset(
    {"old_string", "old_str", "old_text", "old_content", "oldString", "oldText", "old_source"}
)
LEAST_CHARS = 60
LEAST_SAVING = 0.1
_ERROR_HEAD = 160

Unique = Callable[[str], bool]


def was_made(message: Message, part: int) -> bool:
    """Tell whether a result does not read like the failure of an edit."""
    result = message.parts[part]
    return not result.is_error and "error" not in result.text[:_ERROR_HEAD].lower()


def may_change(message: Message) -> bool:
    """Tell whether a call may be shortened: thinking signs what stands beside it."""
    return not any(part.kind == "thinking" or part.signed for part in message.parts)


def without_old_text(arguments: str, is_unique: Unique) -> str | None:
    """Return the JSON arguments of an edit with less of its old text; None when that saves too little.

    `is_unique` tells whether no other text of the view holds a name.
    """
    try:
        given = json.loads(arguments)
        others = Text(strings_of(json.dumps(_shorter(given, lambda _: "")))).names
        short = _shorter(given, lambda old: _cut(old, lambda n: is_unique(n) and n not in others))
        text = json.dumps(short, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= (1 - LEAST_SAVING) * len(arguments) else None


def _shorter(value: Any, shorten: Callable[[str], str]) -> Any:
    """Return a JSON value in which every long old text is another one."""
    if isinstance(value, list):
        return [_shorter(each, shorten) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: shorten(each)
        if key in OLD_TEXT and isinstance(each, str) and len(each) >= LEAST_CHARS
        else _shorter(each, shorten)
        for key, each in value.items()
    }


def _cut(old: str, is_unique: Unique) -> str:
    """Return a mark and the lines of an old text that hold a name for the first time."""
    text = Text(old)
    held: set[str] = set()
    kept: list[str] = []
    for line, names in zip(text.lines, text.line_names, strict=True):
        wanted = {name for name in names - held if is_unique(name)}
        if wanted:
            held |= wanted
            kept.append(line)
    gone = len(text.lines) - len(kept)
    return "\n".join([f"{OPENING} {gone} lines that this edit replaced]", *kept]) if gone else old
