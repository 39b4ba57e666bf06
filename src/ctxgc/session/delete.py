"""Deletion: gone for good, on explicit request or by the limits of the stash; no copy of the text is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from ctxgc.collector import Exchange
from ctxgc.core import HANDLE, ContextSegment, Message, note
from ctxgc.errors import InputError, StoreError
from ctxgc.session.apply import ViewEditor
from ctxgc.session.documents import form_writes
from ctxgc.session.notices import Notices
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.recall import ProtectedMessages
from ctxgc.session.view import compare
from ctxgc.stores import Drop, Put, Write
from ctxgc.wire import replace_text, strip_bound_thinking

DELETED = note("deleted on request")


class _Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What the deletion of one segment means.

    `stays` is what the view shows of its message afterwards: with a marker in place of the text, if it was
    `shown` with that. `forgotten` are the messages that cannot come back without it.
    """

    segment: ContextSegment
    shown: Message | None = None
    stays: Message | None = None
    exchange: Exchange | None = None
    ends: tuple[str, ...] = ()
    forgotten: frozenset[str] = frozenset()


class Deletion(SessionPart):
    """Deletes segments from the view, the heap, the store and its checkpoints."""

    def __init__(self, core: SessionCore, *, editor: ViewEditor, notices: Notices) -> None:
        super().__init__(core)
        self._editor = editor
        self._notices = notices

    def delete(self, names: Sequence[str]) -> list[str]:
        """Delete segments for good. In the view a marker takes the place of their text.

        Raises:
            InputError: one of them is pinned, or its message is invalid without it; nothing changed.
            StoreError: not all could be made durable; `details["deleted"]` names those that are gone.
        """
        segments = list({s.segment_id: s for s in map(self._stash.find, names)}.values())
        for segment in segments:
            self._check(segment)
        self._archive.save()
        gone: list[str] = []
        try:
            for segment in segments:
                # A stub is gone with what it stands for.
                if segment.segment_id in self._heap:
                    self._delete(segment)
                gone.append(segment.segment_id)
        except StoreError as error:
            error.details["deleted"] = gone
            raise
        finally:
            if gone:
                self._events.emit("deleted", ids=gone)
        return gone

    def _delete(self, segment: ContextSegment) -> None:
        self._unbind(segment)
        erasure = self._erasure(segment)
        self._notices.drop({segment.segment_id, *self._own_segments(erasure.forgotten)})
        self._erase(erasure)

    def _check(self, segment: ContextSegment) -> None:
        if segment.pinned or segment.message_id in self._state.pinned_messages:
            raise InputError(
                f"'{segment.segment_id}' is pinned", hint="unpin it first", field="ids"
            )
        if segment.text == DELETED:
            raise InputError(f"'{segment.segment_id}' marks a deletion", field="ids")
        message, place = self._where(segment)
        if message is not None and message.parts[place].kind not in ("text", "tool_result"):
            raise InputError(
                f"'{segment.segment_id}' is a {segment.part} that its message needs",
                hint="collect, or delete the result of the call",
                field="ids",
            )

    def _unbind(self, segment: ContextSegment) -> None:
        """Remove the thinking from the view that the model would refuse after the marker."""
        message, _ = self._where(segment)
        if message is not None and self._thinking.is_bound:
            view = self._view.messages
            new = strip_bound_thinking(view, view.index(message))
            self._editor.apply(new, compare(view, new), "thinking")

    def _where(self, segment: ContextSegment) -> tuple[Message | None, int]:
        """Where a segment, or what stands in for it, is in the view."""
        message = self._view.get(segment.message_id or "")
        ids = self._segmenter.segment_ids(message.message_id) if message else ()
        for place, segment_id in enumerate(ids):
            here = self._heap.get(segment_id)
            if segment.segment_id in (here.segment_id, here.derived_from):
                return message, place
        return None, 0

    def _erasure(self, segment: ContextSegment) -> _Erasure:
        message_id = segment.message_id or ""
        left = self._view.originals.get(message_id)
        ids = frozenset((message_id, *(left.together if left else ())))
        ids |= self._notices.of_earlier_views({segment.segment_id, *self._own_segments(ids)})
        message, place = self._where(segment)
        if message is None:
            rest = self._view.get(message_id)
            return _Erasure(segment=segment, stays=rest, ends=(segment.segment_id,), forgotten=ids)
        marked = replace_text(message, place, DELETED, keep_media=False)
        shown = self._segmenter.segment_ids(message.message_id)
        return _Erasure(
            segment=segment,
            shown=message,
            stays=marked,
            exchange=self._segmenter.exchange(message, marked, shown),
            ends=tuple({segment.segment_id: None, shown[place]: None}),
            forgotten=ids,
        )

    def _own_segments(self, message_ids: Iterable[str]) -> set[str]:
        """The segments that messages out of the view came in with."""
        known = (self._view.originals.get(message_id) for message_id in message_ids)
        return {segment_id for left in known if left is not None for segment_id in left.segment_ids}

    def _erase(self, erasure: _Erasure) -> None:
        new = self._view.with_messages([erasure.stays] if erasure.stays else [])
        with self._editor.rewrite(new):
            self._archive.note_state()
            self._archive.commit(*self._writes(erasure))
        if erasure.stays is not None and erasure.shown is not None and erasure.exchange is not None:
            self._segmenter.carry_out(erasure.stays.message_id, erasure.exchange)
            self._accounting.leave(erasure.shown)
            self._accounting.enter(erasure.stays)
            self._view.show(new)
        for segment_id in erasure.ends:
            self._heap.remove(segment_id)
            self._archive.drop_segment(segment_id)
        for message_id in erasure.forgotten:
            self._view.originals.pop(message_id, None)
        self._log.forget(erasure.forgotten)

    def _writes(self, erasure: _Erasure) -> Iterator[Write]:
        yield from (Drop("segments", segment_id) for segment_id in erasure.ends)
        for message_id in erasure.forgotten:
            yield from form_writes(message_id, None, None)
            yield from self._emptied(message_id)
        if erasure.stays is not None:
            yield self._archive.arrival(erasure.stays)
        made = erasure.exchange.made if erasure.exchange else ()
        yield from map(self._archive.segment, made)
        yield from self._archive.scrubbed_records(self._log, erasure.forgotten)
        yield from self._dropped_checkpoints(erasure.forgotten)

    def _emptied(self, message_id: str) -> Iterator[Write]:
        """Keep that a message came in, so that a history that still holds it counts as the same."""
        if message_id in self._view.originals:
            facts = self._archive.arrival_facts(message_id)
            yield Put("messages", message_id, {"message_id": message_id, **facts})

    def _dropped_checkpoints(self, forgotten: frozenset[str]) -> Iterator[Write]:
        """A checkpoint cannot be changed, so one that shows a copy of the text goes with it."""
        for key, doc in self._archive.store.load(self._archive.session_id, "checkpoints"):
            if not forgotten.isdisjoint(_shown_by(doc)):
                yield Drop("checkpoints", key)


def _shown_by(checkpoint: Mapping[str, Any]) -> Iterable[str]:
    """Return the ids of the messages that a stored checkpoint shows."""
    return list(checkpoint.get("context_snapshot", {}).get("places", ()))


# -- The limits of the stash


class StashCollector(SessionPart):
    """Keeps the stash within its limits of age and size, and never deletes what a live handle names."""

    def __init__(
        self, core: SessionCore, *, protected: ProtectedMessages, deletion: Deletion
    ) -> None:
        super().__init__(core)
        self._protected = protected
        self._deletion = deletion

    def collect(
        self, *, max_age_seconds: float | None = None, max_bytes: int | None = None
    ) -> list[str]:
        """Delete what is too old, then the oldest beyond a size; return the ids of what is gone.

        What a tombstone in the view names or stands for, what a working segment refers to, what is
        pinned, and what a checkpoint shows stays.
        """
        stashed = sorted(
            (s for s in self._heap if s.tier == "stashed"), key=lambda s: s.last_touched_at
        )
        needed = self._needed(stashed)
        free = [s for s in stashed if s.segment_id not in needed]
        old = self._too_old(free, max_age_seconds)
        size = sum(map(_bytes, stashed)) - sum(map(_bytes, old))
        gone = [s.segment_id for s in (*old, *_too_much(free[len(old) :], size, max_bytes))]
        return self._deletion.delete(gone) if gone else []

    def _needed(self, stashed: list[ContextSegment]) -> set[str]:
        handles = self._live_handles()
        kept = self._protected.held() | self._in_checkpoints()
        needed = {
            s.segment_id
            for s in stashed
            if s.pinned
            or s.message_id in kept
            or s.text == DELETED
            or self._stash.recall_handle(s.segment_id) in handles
        }
        for segment in self._heap.working():
            needed.update(self._heap.links.targets(segment.segment_id))
            needed.update(filter(None, [segment.derived_from]))
        return needed

    def _live_handles(self) -> set[str]:
        """Return every handle that a text in the view names."""
        return {
            handle
            for message in self._view.messages
            for part in message.parts
            for handle in HANDLE.findall(part.text)
        }

    def _in_checkpoints(self) -> set[str]:
        """The messages that a checkpoint shows: its tombstones must lead somewhere when it is restored."""
        docs = self._archive.store.load(self._archive.session_id, "checkpoints")
        return {message_id for _, doc in docs for message_id in _shown_by(doc)}

    def _too_old(
        self, free: list[ContextSegment], max_age_seconds: float | None
    ) -> list[ContextSegment]:
        """Those beyond an age; they come first, since the list is sorted by age."""
        if max_age_seconds is None:
            return []
        oldest = self._options.clock() - timedelta(seconds=max_age_seconds)
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
