"""Returning: what was moved out comes back, whole or in part."""

from __future__ import annotations

from typing import Any

from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.mcp.context import Context
from ctxgc.mcp.finding import HANDLE
from ctxgc.session.stash import excerpt
from ctxgc.stores import Store
from ctxgc.stores.inbox import take_in

MOST_SHOWN = 50_000
HELD_STEPS = 50
"""For how many steps a recalled segment is safe from every collection."""


def part_of(
    text: str, lines: tuple[int, int] | None, pattern: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the part of a text that is asked for, and where to go on if it is too long to show."""
    wanted = excerpt(text, lines=lines, pattern=pattern)
    if len(wanted) <= MOST_SHOWN:
        return wanted, {}
    cut = wanted.rfind("\n", 0, MOST_SHOWN)
    shown = wanted[: cut if cut > 0 else MOST_SHOWN]
    first = (lines[0] if lines else 1) + shown.count("\n")
    more = {"characters": len(wanted) - len(shown)}
    return shown, more if pattern else {**more, "from_line": first + (1 if cut > 0 else 0)}


def bring_back(context: Context, segment: ContextSegment) -> bool:
    """Move a stashed segment back, safe for a while; tell whether it had been moved out."""
    if segment.tier == "working":
        return False
    context.heap.recall(segment.segment_id)
    context.heap.protect(segment.segment_id, context.heap.step + HELD_STEPS)
    return True


def originals(context: Context, segment: ContextSegment) -> list[ContextSegment]:
    """Return what stands stashed behind a summary or stub, or the segment itself if it is that.

    Raises:
        InputError: nothing was compressed into this segment.
    """
    if segment.tier == "stashed":
        return [segment]
    behind = [segment.derived_from] if segment.derived_from else []
    stashed = [
        context.heap.get(i)
        for i in (*behind, *segment.references)
        if i in context.heap and context.heap.get(i).tier == "stashed"
    ]
    if not behind or not stashed:
        raise InputError(
            f"'{segment.segment_id}' was not compressed",
            hint="context_recall(handle) shows its text",
            field="segment_id",
        )
    return stashed


def origin(segment: ContextSegment) -> dict[str, Any]:
    """Return where a text comes from, so that nobody takes it for an instruction."""
    known = {
        "type": segment.type,
        "role": segment.role,
        "trust": segment.trust,
        "file_path": segment.file_path,
        "lines": list(segment.line_range) if segment.line_range else None,
        "command": segment.command,
        "created_at": segment.created_at.isoformat(),
    }
    return {key: value for key, value in known.items() if value is not None}


def from_other_doors(store: Store, handle: str) -> dict[str, Any] | None:
    """Return the document of a segment that another door of this store stashed under a handle.

    Only a whole handle finds anything, and contexts of other callers are never looked at.
    """
    if not HANDLE.fullmatch(handle):
        return None
    take_in(store)
    for info in store.sessions():
        if store.get(info.session_id, "state", "context") is not None:
            continue
        for _, doc in store.load(info.session_id, "segments"):
            if doc.get("handle") == handle:
                return {**doc, "session_id": info.session_id}
    return None
