"""Branches: a session file is a tree, and the agent goes on from its newest line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ctxgc.wire.transcripts.entry import Entry, Link


def live_branch(items: Sequence[Entry | Link], kept: Collection[str] = ()) -> list[Entry | Link]:
    """Return the items that the newest one goes back to, in their order.

    Blocks of the same answer, and results of its calls, hang beside the branch and belong to it. Where
    a parent was lost with a damaged line, the branch goes on with the line before. `kept` are ids that a
    compaction took over from the window before.
    """
    on_branch = _ancestors(items)
    branch = [item for n, item in enumerate(items) if n in on_branch]
    replies = {item.reply_id for item in branch if isinstance(item, Entry) and item.reply_id}
    loose = [item for item in items if isinstance(item, Entry) and item.reply_id in replies]
    calls = {name for item in (*branch, *loose) for name in _ids(item, "tool_use", "id")}
    return [
        item
        for n, item in enumerate(items)
        if n in on_branch or _belongs(item, replies, calls) or item.message_id in kept
    ]


def _ancestors(items: Sequence[Entry | Link]) -> set[int]:
    places = {item.message_id: n for n, item in enumerate(items)}
    found: set[int] = set()
    at = len(items) - 1
    while at >= 0 and at not in found:
        found.add(at)
        parent = items[at].parent_id
        if parent is None:
            break
        before = places.get(parent, at - 1)
        at = before if before < at else at - 1
    return found


def _belongs(item: Entry | Link, replies: set[str], calls: set[str]) -> bool:
    if not isinstance(item, Entry):
        return False
    if item.reply_id is not None and item.reply_id in replies:
        return True
    return any(name in calls for name in _ids(item, "tool_result", "tool_use_id"))


def _ids(item: Entry | Link, kind: str, key: str) -> list[str]:
    content: Any = item.data.get("content") if isinstance(item, Entry) else None
    blocks = content if isinstance(content, list) else []
    found = [b.get(key) for b in blocks if isinstance(b, dict) and b.get("type") == kind]
    return [name for name in found if isinstance(name, str)]
