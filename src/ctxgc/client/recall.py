"""The two tools with which a model gets back what was moved out of its view.

They are offered from the first request on: tools stand before all messages, so one that came later
would re-write everything that the provider has cached.
"""

from __future__ import annotations

from typing import Any

from ctxgc.client.tool import Tool
from ctxgc.errors import InputError
from ctxgc.session import Hit, Session

RECALL_NAMES = ("context_recall", "context_search")
EXCERPT = 200
_RECALL = (
    "Return text that was moved out of this conversation, by the handle in a [ctxgc: ...] note."
)
_SEARCH = (
    "Search everything that was moved out of this conversation; returns handles with excerpts."
)
_RECALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "[first, last], from 1",
        },
        "pattern": {"type": "string", "description": "only lines near this text"},
    },
    "required": ["handle"],
}
_SEARCH_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}


def recall_tools(session: Session) -> tuple[Tool, Tool]:
    """Return `context_recall` and `context_search` for a session."""

    def recall(handle: str, lines: list[int] | None = None, pattern: str | None = None) -> str:
        text = session.read(handle, lines=_range(lines), pattern=pattern)
        session.note_fault(handle)
        return _bounded(text, session.context_limit)

    def search(query: str, limit: int = 5) -> str:
        hits = session.search(query, limit, {"tier": "stashed"})
        return "\n".join(map(_line, hits)) or "nothing that was moved out matches"

    return (
        Tool(
            name="context_recall", description=_RECALL, parameters=_RECALL_SCHEMA, function=recall
        ),
        Tool(
            name="context_search", description=_SEARCH, parameters=_SEARCH_SCHEMA, function=search
        ),
    )


def _range(lines: list[int] | None) -> tuple[int, int] | None:
    if not lines:
        return None
    if len(lines) != 2:
        raise InputError(f"lines cannot be {lines}", hint="[first, last], from 1", field="lines")
    return lines[0], lines[1]


def _bounded(text: str, most: int) -> str:
    """Return at most as many characters as the window has tokens: about a quarter of it."""
    if len(text) <= most:
        return text
    shown = text[:most]
    last = shown.count("\n") + 1
    return f"{shown}\n[ctxgc: cut after line {last}; ask for later lines with lines=[{last}, ...]]"


def _line(hit: Hit) -> str:
    start = " ".join(hit.text[: EXCERPT * 2].split())[:EXCERPT]
    what = hit.segment.file_path or hit.segment.name or hit.segment.type
    return f"{hit.handle} ({what}, {hit.segment.tokens or 0} tokens): {start}"
