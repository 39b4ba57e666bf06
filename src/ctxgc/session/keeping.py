"""What stays and what is found: pins, policies, search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ctxgc.budget import GCPolicy
from ctxgc.session.arguments import checked_filters
from ctxgc.session.saving import save
from ctxgc.session.stash import Hit
from ctxgc.session.trying import trying
from ctxgc.session.workings import Workings
from ctxgc.stores import SearchFilters

_IDS = "history[n].message_id is the id of a message, append() returns the ids of segments"


def set_pinned(w: Workings, name: str, *, pinned: bool) -> None:
    """Pin or unpin a message with all its parts, or a single segment.

    Raises:
        StoreError: it could not be made durable; nothing has changed.
    """
    is_message = w.view.get(name) is not None
    messages = {name} if is_message else set()
    ids = w.segment_ids(name) if is_message else (w.stash.find(name, _IDS).segment_id,)
    kept = w.pinned_messages | messages if pinned else w.pinned_messages - messages
    with pinning(w, kept, dict.fromkeys(ids, pinned)):
        save(w)
    w.events.emit("pinned" if pinned else "unpinned", id=name)


@contextmanager
def pinning(w: Workings, messages: set[str], segments: Mapping[str, bool]) -> Iterator[None]:
    """Pin just these messages, and pin or unpin segments; what is made durable inside says so already.

    When that fails, all is pinned as before.
    """
    changed = {i: pinned for i, pinned in segments.items() if w.heap.get(i).pinned != pinned}
    _set_pins(w, changed)
    try:
        with trying(w, pinned_messages=messages):
            yield
    except BaseException:
        _set_pins(w, {segment_id: not pinned for segment_id, pinned in changed.items()})
        raise


def _set_pins(w: Workings, pins: Mapping[str, bool]) -> None:
    for segment_id, pinned in pins.items():
        (w.heap.pin if pinned else w.heap.unpin)(segment_id)
    w.unsaved.update(dict.fromkeys(pins))


def set_policy(w: Workings, name: str, policy: GCPolicy) -> None:
    """Give a message, or the message of a segment, another policy.

    Raises:
        StoreError: it could not be made durable; nothing has changed.
    """
    is_message = w.view.get(name) is not None
    message_id = (name if is_message else w.stash.find(name, _IDS).message_id) or name
    chosen = GCPolicy(policy)
    with trying(w.books, policies={**w.books.policies, message_id: chosen}):
        save(w)
    w.books.set_policy(message_id, chosen)


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
