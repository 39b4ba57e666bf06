"""Deletion: gone for good, on explicit request only. No copy of the text stays behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError, StoreError
from ctxgc.session.archive import arrival_write, form_writes, segment_write
from ctxgc.session.digests import tell_no_more, told_before
from ctxgc.session.saving import note_state, save
from ctxgc.session.swapping import rewriting, swap
from ctxgc.session.verdict import compare
from ctxgc.session.workings import Workings
from ctxgc.stores import Drop, Put, Write
from ctxgc.strategies.segmenting import Exchange
from ctxgc.wire import replace_text, strip_bound_thinking

DELETED = "[ctxgc: deleted on request]"


class _Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What the deletion of one segment means.

    `stays` is what the view shows of its message afterwards: with a marker in the place of the text,
    if it was `shown` with that. `forgotten` are the messages that cannot come back without it.
    """

    segment: ContextSegment
    shown: Message | None = None
    stays: Message | None = None
    exchange: Exchange | None = None
    ends: tuple[str, ...] = ()
    forgotten: frozenset[str] = frozenset()


def delete(w: Workings, names: Sequence[str]) -> list[str]:
    """Delete segments for good. In the view a marker takes the place of their text.

    Raises:
        InputError: one of them is pinned, or its message cannot stand without it; nothing changed.
        StoreError: not all could be made durable; `details["deleted"]` names those that are gone.
    """
    segments = list({s.segment_id: s for s in map(w.stash.find, names)}.values())
    for segment in segments:
        _check(w, segment)
    save(w)
    gone: list[str] = []
    try:
        for segment in segments:
            _delete(w, segment)
            gone.append(segment.segment_id)
    except StoreError as error:
        error.details["deleted"] = gone
        raise
    finally:
        if gone:
            w.events.emit("deleted", ids=gone)
    return gone


def _delete(w: Workings, segment: ContextSegment) -> None:
    _unbind(w, segment)
    erasure = _erasure(w, segment)
    tell_no_more(w, _handles(w, erasure))
    _erase(w, erasure)


def _check(w: Workings, segment: ContextSegment) -> None:
    if segment.pinned or segment.message_id in w.pinned_messages:
        raise InputError(f"'{segment.segment_id}' is pinned", hint="unpin it first", field="ids")
    if segment.text == DELETED:
        raise InputError(f"'{segment.segment_id}' marks a deletion", field="ids")
    message, place = _where(w, segment)
    if message is not None and message.parts[place].kind not in ("text", "tool_result"):
        raise InputError(
            f"'{segment.segment_id}' is a {segment.part} that its message needs",
            hint="collect, or delete the result of the call",
            field="ids",
        )


def _unbind(w: Workings, segment: ContextSegment) -> None:
    """Take the thinking out of the view that the model would refuse behind the marker."""
    message, _ = _where(w, segment)
    if message is not None and w.binds_thinking:
        view = w.view.messages
        new = strip_bound_thinking(view, view.index(message))
        swap(w, new, compare(view, new))


def _where(w: Workings, segment: ContextSegment) -> tuple[Message | None, int]:
    """Where a segment, or what stands in for it, is in the view."""
    message = w.view.get(segment.message_id or "")
    for place, segment_id in enumerate(w.segment_ids(message.message_id) if message else ()):
        here = w.heap.get(segment_id)
        if segment.segment_id in (here.segment_id, here.derived_from):
            return message, place
    return None, 0


def _erasure(w: Workings, segment: ContextSegment) -> _Erasure:
    left = w.view.originals.get(segment.message_id or "")
    ids = frozenset((segment.message_id or "", *(left.together if left else ())))
    ids |= told_before(w, {segment.segment_id, *_own_segments(w, ids)})
    message, place = _where(w, segment)
    if message is None:
        rest = w.view.get(segment.message_id or "")
        return _Erasure(segment=segment, stays=rest, ends=(segment.segment_id,), forgotten=ids)
    marked = replace_text(message, place, DELETED, keep_media=False)
    shown = w.segment_ids(message.message_id)
    return _Erasure(
        segment=segment,
        shown=message,
        stays=marked,
        exchange=w.segmenter.exchange(message, marked, shown),
        ends=tuple({segment.segment_id: None, shown[place]: None}),
        forgotten=ids,
    )


def _own_segments(w: Workings, message_ids: Iterable[str]) -> set[str]:
    """The segments that messages out of the view came in with."""
    known = (w.view.originals.get(message_id) for message_id in message_ids)
    return {segment_id for left in known if left is not None for segment_id in left.segment_ids}


def _handles(w: Workings, erasure: _Erasure) -> set[str]:
    return {erasure.segment.segment_id, *_own_segments(w, erasure.forgotten)}


def _erase(w: Workings, erasure: _Erasure) -> None:
    new = w.view.with_messages([erasure.stays] if erasure.stays else [])
    with rewriting(w, new):
        note_state(w)
        w.archive.commit(*_writes(w, erasure))
    if erasure.stays is not None and erasure.shown is not None and erasure.exchange is not None:
        w.segmenter.carry_out(erasure.stays.message_id, erasure.exchange)
        w.books.leave(erasure.shown)
        w.books.enter(erasure.stays)
        w.view.show(new)
    for segment_id in erasure.ends:
        w.heap.remove(segment_id)
        w.archive.drop_segment(segment_id)
    for message_id in erasure.forgotten:
        w.view.originals.pop(message_id, None)
    w.applied = [record.without(erasure.forgotten) for record in w.applied]


def _writes(w: Workings, erasure: _Erasure) -> Iterator[Write]:
    yield from (Drop("segments", segment_id) for segment_id in erasure.ends)
    for message_id in erasure.forgotten:
        yield from form_writes(message_id, None, None)
        yield from _emptied(w, message_id)
    if erasure.stays is not None:
        yield arrival_write(erasure.stays, **w.arrival(erasure.stays.message_id))
    made = erasure.exchange.made if erasure.exchange else ()
    yield from (segment_write(s, w.handle(s.segment_id)) for s in made)
    yield from _scrubbed_records(w, erasure.forgotten)
    yield from _dropped_checkpoints(w, erasure.forgotten)


def _emptied(w: Workings, message_id: str) -> Iterator[Write]:
    """Keep that a message came in, so that a history which holds it still is the same one."""
    if message_id in w.view.originals:
        yield Put("messages", message_id, {"message_id": message_id, **w.arrival(message_id)})


def _scrubbed_records(w: Workings, forgotten: frozenset[str]) -> Iterator[Write]:
    store, session_id = w.archive.store, w.archive.session_id
    for record in w.applied:
        if any(message.message_id in forgotten for message in record.before):
            key = f"{record.number:06d}"
            doc = store.get(session_id, "collections", key) or {}
            rest = [each for each in doc["before"] if each["message_id"] not in forgotten]
            yield Put("collections", key, {**doc, "before": rest})


def _dropped_checkpoints(w: Workings, forgotten: frozenset[str]) -> Iterator[Write]:
    """A checkpoint cannot be changed, so one that shows a copy of the text goes with it."""
    for key, doc in w.archive.store.load(w.archive.session_id, "checkpoints"):
        if not forgotten.isdisjoint(shown_by(doc)):
            yield Drop("checkpoints", key)


def shown_by(checkpoint: Mapping[str, Any]) -> Iterable[str]:
    """Return the ids of the messages that a stored checkpoint shows."""
    return list(checkpoint.get("context_snapshot", {}).get("places", ()))
