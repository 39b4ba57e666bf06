"""Tombstones: the short text left where a segment was.

It says what it was, how large, why it left, which identifiers went with it, and the exact call that
brings it back.
"""

from __future__ import annotations

from ctxgc.core.segment import ContextSegment
from ctxgc.core.text import GAP

OPENING = "[ctxgc:"
NAMES = "Names: "
RECALL_CALL = 'context_recall(handle="{handle}")'


def tombstone(
    segment: ContextSegment,
    why: str,
    *,
    handle: str,
    recall: str = RECALL_CALL,
    names: tuple[str, ...] = (),
    kept: str = "",
) -> str:
    """Return the text that stands in for a segment.

    Args:
        segment: what was moved out.
        why: the reason of the plan.
        handle: what recalls it; an empty one leaves the recall call out.
        recall: the exact call to make, with `{handle}` for the handle.
        names: identifiers that only the stash still holds.
        kept: verbatim lines that stay.
    """
    parts = [f"{OPENING} {describe(segment)} moved out, {segment.tokens or 0} tokens: {why}"]
    if names:
        parts.append(NAMES + ", ".join(names))
    if handle:
        parts.append(f"To see it again: {recall.replace('{handle}', handle)}")
    head = ". ".join(parts) + "]"
    return f"{head}\n{kept}" if kept else head


def describe(segment: ContextSegment) -> str:
    """Return what a segment is in a few words: its name, file or command, else its type."""
    if segment.name:
        return f"{segment.type} '{segment.name}'"
    if segment.file_path:
        lines = f":{segment.line_range[0]}-{segment.line_range[1]}" if segment.line_range else ""
        return f"{segment.access or segment.type} of {segment.file_path}{lines}"
    if segment.command:
        command = segment.command if len(segment.command) <= 80 else f"{segment.command[:77]}..."
        return f"output of {command}"
    return segment.type


def is_tombstone(text: str) -> bool:
    """Tell whether a text is one that `tombstone` made."""
    return text.startswith(OPENING)


def kept_of(text: str) -> str:
    """Return the verbatim lines under a tombstone, without the marks of gaps."""
    lines = text.split("\n")[1:]
    return "\n".join(line for line in lines if line != GAP and not line.startswith(NAMES))
