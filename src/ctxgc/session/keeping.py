"""What stays, what comes back, what goes for good: pins, recall, search, deletion, undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError, PlanError
from ctxgc.session.archive import message_write
from ctxgc.session.restoring import ORIGINAL
from ctxgc.session.saving import save
from ctxgc.session.stash import Hit
from ctxgc.session.view import Gone
from ctxgc.session.workings import Workings
from ctxgc.stores import Drop, Put, SearchFilters
from ctxgc.strategies.turns import opens_turn


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


def recall(w: Workings, handle: str) -> ContextSegment:
    """Bring a segment back into its place in the view, and hold it there for some collections."""
    segment = w.stash.find(handle)
    if segment.tier == "working":
        w.heap.touch(segment.segment_id, w.clock())
        return segment
    left = w.view.originals.get(segment.message_id or "")
    if left is None:
        w.heap.recall(segment.segment_id)
    else:
        put_back(w, _with_group(w, left))
    until = len(w.applied) + w.config.recall_hold_collections
    for message_id in left.together or (left.message.message_id,) if left else ():
        w.held_until[message_id] = until
    w.savings.fault(segment.tokens or 0, w.books.budget.total_tokens())
    save(w)
    w.events.emit("recalled", handle=handle, segment_id=segment.segment_id)
    return w.heap.get(segment.segment_id)


def _with_group(w: Workings, left: Gone) -> list[Gone]:
    """A message that left with its group comes back with it."""
    here = {m.message_id for m in w.view.messages}
    if left.message.message_id in here:
        return [left]
    return [w.view.originals[i] for i in left.together or (left.message.message_id,)]


def put_back(w: Workings, lefts: Sequence[Gone]) -> None:
    """Put messages back as they came in, over the stand-ins in their places."""
    here = {m.message_id: m for m in w.view.messages}
    first = len(w.view.messages)
    for left in lefts:
        message_id = left.message.message_id
        stand_ins = set(w.segment_ids(message_id)) - set(left.segment_ids)
        for segment_id in stand_ins:
            w.heap.remove(segment_id)
            w.archive.drop_segment(segment_id)
        for segment_id in left.segment_ids:
            w.heap.recall(segment_id)
            w.unsaved[segment_id] = None
        if message_id in here:
            first = min(first, w.view.messages.index(here[message_id]))
        w.segmenter.adopt(message_id, left.segment_ids)
        w.books.enter(left.message)
        w.archive.later(message_write(w.view, left.message, **w.view.arrival(left.message)))
        w.archive.later(Drop("messages", f"{ORIGINAL}{message_id}"))
    w.view.put_back([left.message for left in lefts])
    w.sent_before = min(w.sent_before, sum(map(w.books.tokens, w.view.messages[:first])))
    w.turns_in_view = sum(opens_turn(m) for m in w.view.messages)


def undo(w: Workings) -> None:
    """Make the view what it was before the last collection, with what came in since.

    Raises:
        PlanError: there is no collection to undo.
    """
    if not w.applied:
        raise PlanError("there is no collection to undo", hint="look at gc_history")
    record = w.applied.pop()
    for message in [m for m in w.view.messages if m.message_id in record.added]:
        for segment_id in w.segment_ids(message.message_id):
            w.heap.remove(segment_id)
            w.archive.drop_segment(segment_id)
        w.segmenter.forget(message.message_id)
        w.books.leave(message)
        w.view.messages.remove(message)
        w.archive.later(Drop("messages", message.message_id))
    put_back(w, [_as_before(w, message) for message in record.before])
    doc = w.archive.store.get(w.archive.session_id, "collections", f"{record.number:06d}") or {}
    w.archive.later(Put("collections", f"{record.number:06d}", {**doc, "undone": True}))
    save(w)
    w.watch()
    w.events.emit("undone", number=record.number)


def _as_before(w: Workings, message: Message) -> Gone:
    known = w.view.originals.get(message.message_id)
    if known is not None and known.message.data == message.data:
        return known
    return Gone(message=message, segment_ids=w.segmenter.take(message))


def search(
    w: Workings, query: str, limit: int, filters: SearchFilters | Mapping[str, Any] | None
) -> list[Hit]:
    """Return the segments of this session that match best."""
    if isinstance(filters, Mapping):
        try:
            filters = msgspec.convert(dict(filters), SearchFilters, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(
                f"filters: {error}", hint="see SearchFilters", field="filters"
            ) from None
    save(w)
    found = w.archive.store.search(
        query, session_id=w.archive.session_id, filters=filters, limit=limit
    )
    hits = []
    for hit in found:
        segment = w.heap.peek(hit.key)
        if segment is not None:
            hits.append(
                Hit(handle=w.handle(hit.key), score=hit.score, text=segment.text, segment=segment)
            )
    return hits
