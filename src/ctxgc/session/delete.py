"""The stash is collected too: by age, by size, and never under a live handle."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from ctxgc.core import ContextSegment, Message, note
from ctxgc.errors import InputError, StoreError
from ctxgc.session.apply import rewriting, show, swap
from ctxgc.session.archive import arrival_write, form_writes, segment_write
from ctxgc.session.plugin_check import compare
from ctxgc.session.state import Workings, note_state, save
from ctxgc.stores import Drop, Put, Write
from ctxgc.strategies import DigestEntry, Exchange, handle_of, handles_in, without, write_digest
from ctxgc.wire import replace_text, strip_bound_thinking, text_message

# -- Digests in the view of a session: they tell of what left in need, and no more of what is dele


def tell_no_more(w: Workings, handles: set[str]) -> None:
    """Write the digests in the view anew, without the handles and lines of some groups.

    Raises:
        StoreError: that could not be made durable; nothing has changed.
    """
    told = [message for message in w.view.messages if _tells(message, handles)]
    for message in told:
        text = without(message.text(), handles)
        name = f"gc_notice_{uuid.uuid4().hex}"
        new = [text_message("user", text, message.format, name)] if text else []
        view = w.view.messages
        place = view.index(message)
        show(w, [*view[:place], *new, *view[place + 1 :]], created_by="delete")


def leaving(w: Workings, new: Sequence[Message]) -> list[str]:
    """Return the handles of all groups that would be out of the view if this were the new one.

    Those that a digest of the new view tells of are not among them.
    """
    stay = {message.message_id for message in new}
    gone = [message for message in w.view.messages if message.message_id not in stay]
    found = [handle for m in gone if m.origin == "gc_notice" for handle in handles_in(m.text())]
    for group in w.view.groups_of(w.view.messages):
        first = w.view.messages[group[0]]
        if first.message_id not in stay and first.origin != "gc_notice":
            handle = handle_of(map(w.heap.get, w.segment_ids(first.message_id)))
            found += [] if handle is None else [handle]
    told = _told(new)
    return [handle for handle in dict.fromkeys(found) if handle not in told]


def notice_of(w: Workings, handles: Sequence[str]) -> Message | None:
    """Return a notice that tells of groups that left; None when there is nothing to tell, or no way back.

    A recovery has several steps: what a later one brought back, or a digest tells of, is left out.
    """
    told = w.recall_call is not None and w.config.notify_on_gc and w.view.messages
    out = _still_out(w, handles) if told and handles else []
    if not out:
        return None
    said = note(f"{len(out)} older steps were moved out in need")
    text = "\n".join([said, write_digest(map(DigestEntry, out))])
    name = f"gc_notice_{uuid.uuid4().hex}"
    return text_message("user", text, w.view.messages[0].format, name)


def show_notice(w: Workings, notice: Message) -> None:
    """Put a notice in front of the last step of the view."""
    view = w.view.messages
    place = max(w.view.groups_of(view), key=max)[0]
    show(w, [*view[:place], notice, *view[place:]], created_by="guard")


def _still_out(w: Workings, handles: Sequence[str]) -> list[str]:
    """Return those handles, each once, whose group is neither in the view nor told of there nor deleted."""
    here = {message.message_id for message in w.view.messages}
    told = _told(w.view.messages)
    found = {handle: w.heap.peek(handle) for handle in handles if handle not in told}
    return [h for h, segment in found.items() if segment and segment.message_id not in here]


def _told(messages: Sequence[Message]) -> set[str]:
    return {h for m in messages if m.origin == "gc_notice" for h in handles_in(m.text())}


def told_before(w: Workings, handles: set[str]) -> frozenset[str]:
    """Return the digests of earlier collections that an undo would show, and that name a handle."""
    return frozenset(
        message.message_id
        for record in w.applied
        for message in record.before
        if _tells(message, handles)
    )


def _tells(message: Message, handles: set[str]) -> bool:
    return message.origin == "gc_notice" and not handles.isdisjoint(handles_in(message.text()))


# -- Deletion: gone for good, on explicit request only. No copy of the text stays behind


DELETED = note("deleted on request")


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


# -- The stash is collected too: by age, by size, and never under a live handle


_HANDLE = re.compile(r"h-[a-z2-7]{16}")


def collect_stash(
    w: Workings, *, max_age_seconds: float | None = None, max_bytes: int | None = None
) -> list[str]:
    """Delete what is too old, then the oldest beyond a size; return the ids of what is gone.

    What a tombstone in the view names or stands for, what a working segment refers to, what is
    pinned, and what a checkpoint shows stays.
    """
    stashed = _stashed(w)
    held = _held(w, stashed)
    free = [s for s in stashed if s.segment_id not in held]
    old = _too_old(w, free, max_age_seconds)
    size = sum(map(_bytes, stashed)) - sum(map(_bytes, old))
    gone = [s.segment_id for s in (*old, *_too_much(free[len(old) :], size, max_bytes))]
    return delete(w, gone) if gone else []


def live_handles(w: Workings) -> set[str]:
    """Return every handle that a text in the view names."""
    return {
        handle
        for message in w.view.messages
        for part in message.parts
        for handle in _HANDLE.findall(part.text)
    }


def _stashed(w: Workings) -> list[ContextSegment]:
    return sorted((s for s in w.heap if s.tier == "stashed"), key=lambda s: s.last_touched_at)


def _held(w: Workings, stashed: list[ContextSegment]) -> set[str]:
    handles, kept = live_handles(w), w.kept_messages() | _in_checkpoints(w)
    held = {
        s.segment_id
        for s in stashed
        if s.pinned
        or s.message_id in kept
        or s.text == DELETED
        or w.handle(s.segment_id) in handles
    }
    for segment in w.heap.working():
        held.update(w.heap.links.targets(segment.segment_id))
        held.update(filter(None, [segment.derived_from]))
    return held


def _in_checkpoints(w: Workings) -> set[str]:
    """The messages that a checkpoint shows: its tombstones must lead somewhere when it is restored."""
    docs = w.archive.store.load(w.archive.session_id, "checkpoints")
    return {message_id for _, doc in docs for message_id in shown_by(doc)}


def _too_old(
    w: Workings, free: list[ContextSegment], max_age_seconds: float | None
) -> list[ContextSegment]:
    """Those beyond an age; they are the first, since the oldest stand in front."""
    if max_age_seconds is None:
        return []
    oldest = w.clock() - timedelta(seconds=max_age_seconds)
    return [segment for segment in free if segment.last_touched_at < oldest]


def _too_much(free: list[ContextSegment], size: int, max_bytes: int | None) -> list[ContextSegment]:
    gone: list[ContextSegment] = []
    for segment in free:
        if max_bytes is None or size <= max_bytes:
            break
        size -= _bytes(segment)
        gone.append(segment)
    return gone


def _bytes(segment: ContextSegment) -> int:
    return len(segment.text.encode("utf-8", "surrogatepass"))
