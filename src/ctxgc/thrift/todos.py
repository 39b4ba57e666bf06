"""To-do lists: one that a newer list of the same tool has replaced says nothing any more.

It was sent before, so it leaves like a dead result does: when the cut pays. Its call stays a valid one, with
a mark in place of the entries, and with the lines that hold a name which nothing else in the view holds.
"""

from __future__ import annotations

import json
import re

from ctxgc.core.message import Message, Part
from ctxgc.core.tombstone import OPENING
from ctxgc.thrift.calls import may_change
from ctxgc.thrift.presets import Shares

SHARES = Shares(lines=1.0, names=0.0)
"""Every line that is worth its room stays; lists are short."""

_LIST_TOOL = re.compile(
    r"(?:.*(?:__|\.))?(?:todo_?write|(?:write|set|update|manage)_?(?:todos?|todo_?list|plan))",
    re.IGNORECASE,
)


def is_todo_list(name: str, arguments: str) -> bool:
    """Tell whether a call writes a whole to-do list; one that only adds to a list replaces nothing."""
    if not _LIST_TOOL.fullmatch(name):
        return False
    given = _object(arguments)
    return bool(given) and not given.get("merge")


def may_leave(message: Message, part: Part) -> bool:
    """Tell whether the list of a call may be taken out of it, and was not yet."""
    return not part.server_side and may_change(message) and OPENING not in part.text


def without_entries(arguments: str, stub: str) -> str:
    """Return the arguments of a list's call with the lines of a stub in place of what it had."""
    key = next(iter(_object(arguments)), "todos")
    given = {key: stub.split("\n")}
    return json.dumps(given, ensure_ascii=False)


def _object(arguments: str) -> dict[str, object]:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
