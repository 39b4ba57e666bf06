"""Deletion: gone for good, on explicit request only."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.session.archive import message_write
from ctxgc.session.restoring import ORIGINAL
from ctxgc.session.saving import save
from ctxgc.session.workings import Workings
from ctxgc.stores import Drop, Put
from ctxgc.wire import replace_text

DELETED = "[ctxgc: deleted on request]"


def delete(w: Workings, names: Sequence[str]) -> list[str]:
    """Delete segments for good. In the view a marker takes the place of their text.

    Raises:
        InputError: one of them is pinned, or its message cannot stand without it; nothing changed.
    """
    segments = list({s.segment_id: s for s in map(w.stash.find, names)}.values())
    for segment in segments:
        _check(w, segment)
    for segment in segments:
        _erase(w, segment)
    save(w)
    ids = [segment.segment_id for segment in segments]
    w.events.emit("deleted", ids=ids)
    return ids


def _check(w: Workings, segment: ContextSegment) -> None:
    if segment.pinned or segment.message_id in w.kept_messages():
        raise InputError(f"'{segment.segment_id}' is pinned", hint="unpin it first", field="ids")
    shown = _shown(w, segment)
    if shown is not None and shown[0].parts[shown[1]].kind not in ("text", "tool_result"):
        raise InputError(
            f"'{segment.segment_id}' is a {segment.part} that its message needs",
            hint="collect, or delete the result of the call",
            field="ids",
        )


def _shown(w: Workings, segment: ContextSegment) -> tuple[Message, int] | None:
    """Where a segment, or what stands in for it, is in the view."""
    message = w.view.get(segment.message_id or "")
    if message is None:
        return None
    for place, segment_id in enumerate(w.segment_ids(message.message_id)):
        here = w.heap.get(segment_id)
        if segment.segment_id in (here.segment_id, here.derived_from):
            return message, place
    return None


def _erase(w: Workings, segment: ContextSegment) -> None:
    shown = _shown(w, segment)
    if shown is not None:
        _mark_in_view(w, *shown)
    _forget_originals(w, segment)
    if segment.segment_id in w.heap:
        w.heap.remove(segment.segment_id)
    w.archive.drop_segment(segment.segment_id)


def _mark_in_view(w: Workings, message: Message, place: int) -> None:
    marked = replace_text(message, place, DELETED, keep_media=False)
    changed = [w.segment_ids(message.message_id)[place]]
    w.unsaved.update(dict.fromkeys(w.segmenter.exchange(message, marked, changed)))
    for stand_in in changed:
        w.heap.remove(stand_in)
        w.archive.drop_segment(stand_in)
    w.view.messages[w.view.messages.index(message)] = marked
    w.books.enter(marked)
    w.archive.later(message_write(w.view, marked, **w.view.arrival(marked)))
    w.sent_before = 0


def _forget_originals(w: Workings, segment: ContextSegment) -> None:
    """No copy of a deleted text stays behind, neither for a recall nor for an undo."""
    message_id = segment.message_id or ""
    if w.view.originals.pop(message_id, None) is not None:
        w.archive.later(Drop("messages", f"{ORIGINAL}{message_id}"))
    if w.view.get(message_id) is None:
        w.archive.later(Drop("messages", message_id))
    for record in list(w.applied):
        if any(message.message_id == message_id for message in record.before):
            w.applied.remove(record)
            key = f"{record.number:06d}"
            doc = w.archive.store.get(w.archive.session_id, "collections", key) or {}
            scrubbed = {**doc, "before": [], "undone": True}
            w.archive.later(Put("collections", key, scrubbed))
