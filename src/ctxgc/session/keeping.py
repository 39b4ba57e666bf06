"""What stays and what is found: pins, policies, search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxgc.budget import GCPolicy
from ctxgc.session.arguments import checked_filters
from ctxgc.session.saving import save
from ctxgc.session.stash import Hit
from ctxgc.session.workings import Workings
from ctxgc.stores import SearchFilters


def set_pinned(w: Workings, name: str, *, pinned: bool) -> None:
    """Pin or unpin a message with all its parts, or a single segment."""
    is_message = w.view.get(name) is not None
    if is_message:
        change = w.pinned_messages.add if pinned else w.pinned_messages.discard
        change(name)
    for segment_id in w.segment_ids(name) if is_message else (w.stash.find(name).segment_id,):
        (w.heap.pin if pinned else w.heap.unpin)(segment_id)
        w.unsaved[segment_id] = None
    save(w)
    w.events.emit("pinned" if pinned else "unpinned", id=name)


def set_policy(w: Workings, name: str, policy: GCPolicy) -> None:
    """Give a message, or the message of a segment, another policy."""
    is_message = w.view.get(name) is not None
    message_id = name if is_message else w.stash.find(name).message_id
    w.books.set_policy(message_id or name, GCPolicy(policy))
    save(w)


def search(
    w: Workings, query: str, limit: int, filters: SearchFilters | Mapping[str, Any] | None
) -> list[Hit]:
    """Return the segments of this session that match best."""
    asked = checked_filters(filters)
    save(w)
    found = w.archive.store.search(
        query, session_id=w.archive.session_id, filters=asked, limit=limit
    )
    hits = []
    for hit in found:
        segment = w.heap.peek(hit.key)
        if segment is not None:
            hits.append(
                Hit(handle=w.handle(hit.key), score=hit.score, text=segment.text, segment=segment)
            )
    return hits
