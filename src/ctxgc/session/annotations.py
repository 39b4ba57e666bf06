"""What users say about messages and segments: pins, policies, and annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from ctxgc.budget import GCPolicy
from ctxgc.core import SECRET_TAG, ContextSegment, Heap, explicit_references
from ctxgc.errors import SegmentError
from ctxgc.session.part import SessionPart

Said = Mapping[str, Any]
"""Fields of a segment that an annotation sets; see `annotation`."""

_IDS = "history[n].message_id is the id of a message, append() returns the ids of segments"


def annotation(heap: Heap, **said: Any) -> Said:
    """Return what is said about a message, checked; None leaves a field out, an empty text clears it.

    Raises:
        SegmentError: a field has a value that no segment may have.
        InputError: the policy is not a GCPolicy.
        UnknownSegmentError: a tag `ref:ID` names no segment.
    """
    given = {name: value for name, value in said.items() if value is not None}
    if isinstance(given.get("tags"), str):
        raise SegmentError("tags is a single text", hint="give a list of tags", field="tags")
    if "tags" in given:
        given["tags"] = tuple(given["tags"])
    if "policy" in given:
        given["policy"] = GCPolicy(given["policy"]).value
    found: dict[str, Any] = {k: None if value == "" else value for k, value in given.items()}
    sample = replace(ContextSegment(text="", type="note"), **found)
    for target in explicit_references(sample):
        heap.get(target)
    return found


def annotated(segment: ContextSegment, said: Said) -> dict[str, Any]:
    """Return the fields of a segment that an annotation changes; found secrets stay tagged."""
    if "tags" not in said:
        return dict(said)
    found = (tag for tag in segment.tags if tag.startswith(SECRET_TAG))
    return {**said, "tags": tuple(dict.fromkeys((*said["tags"], *found)))}


class Annotations(SessionPart):
    """Pins and annotates messages and segments by request of the user."""

    # -- pins ---------------------------------------------------------------------------------------

    def set_pinned(self, name: str, *, pinned: bool) -> None:
        """Pin or unpin a message with all its parts, or a single segment.

        Raises:
            UnknownHandleError: nothing has this id or name.
            StoreError: it could not be made durable; nothing has changed.
        """
        is_message = self._view.get(name) is not None
        messages = {name} if is_message else set()
        before = self._state.pinned_messages
        ids = (
            self._segmenter.segment_ids(name)
            if is_message
            else (self._stash.find(name, _IDS).segment_id,)
        )
        kept = before | messages if pinned else before - messages
        with self.pinned_as(kept, dict.fromkeys(ids, pinned)):
            self._archive.save()
        self._events.emit("pinned" if pinned else "unpinned", id=name)

    @contextmanager
    def pinned_as(self, messages: frozenset[str], segments: Mapping[str, bool]) -> Iterator[None]:
        """Pin exactly these messages, and pin or unpin segments, before something is made durable.

        If that fails, the pins are as before.
        """
        changed = {
            i: pinned for i, pinned in segments.items() if self._heap.get(i).pinned != pinned
        }
        self._pin_segments(changed)
        try:
            with self._state.rollback_on_error():
                self._state.pinned_messages = messages
                yield
        except BaseException:
            self._pin_segments({segment_id: not pinned for segment_id, pinned in changed.items()})
            raise

    def _pin_segments(self, pins: Mapping[str, bool]) -> None:
        for segment_id, pinned in pins.items():
            (self._heap.pin if pinned else self._heap.unpin)(segment_id)
        self._archive.note_unsaved(pins)

    # -- annotations --------------------------------------------------------------------------------

    def annotate(self, name: str, said: Said) -> None:
        """Say something about a message with all its parts, or about a single segment.

        A policy is that of the whole message.

        Raises:
            UnknownHandleError: nothing has this id or name.
            StoreError: it could not be made durable; nothing has changed.
        """
        message_id, segments = self._meant(name)
        with self._annotated_as(segments, said), self._state.rollback_on_error():
            if "policy" in said and message_id is not None:
                chosen = GCPolicy(said["policy"])
                self._state.policies = {**self._state.policies, message_id: chosen}
            self._archive.save()
        if "policy" in said and message_id is not None:
            self._accounting.set_policy(message_id, GCPolicy(said["policy"]))
        self._events.emit("annotated", id=name)

    @contextmanager
    def _annotated_as(self, segments: Iterable[ContextSegment], said: Said) -> Iterator[None]:
        """Annotate segments before that is made durable; if it fails, they are as before."""
        before: dict[str, dict[str, Any]] = {}
        try:
            for segment in segments:
                before[segment.segment_id] = {name: getattr(segment, name) for name in said}
                self._heap.annotate(segment.segment_id, **annotated(segment, said))
            self._archive.note_unsaved(before)
            yield
        except BaseException:
            for segment_id, fields in before.items():
                self._heap.annotate(segment_id, **fields)
            raise

    def _meant(self, name: str) -> tuple[str | None, list[ContextSegment]]:
        """Return the message that a name means, and its segments: those shown and those they stand for."""
        left = self._view.originals.get(name)
        shown = self._segmenter.segment_ids(name)
        if left is not None or shown:
            ids = dict.fromkeys((*(left.segment_ids if left else ()), *shown))
            return name, [self._heap.get(i) for i in ids]
        found = self._stash.find(name, _IDS)
        family = {
            found.segment_id,
            found.derived_from,
            *self._heap.backrefs.get(found.segment_id, ()),
        }
        known = (self._heap.get(i) for i in sorted(i for i in family if i is not None))
        original = found.derived_from or found.segment_id
        return found.message_id, [s for s in known if original in (s.segment_id, s.derived_from)]
