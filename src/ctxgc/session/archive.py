"""The archive: a session in its store, so that a restarted process goes on where this one was.

A message is written once, as it came in. What became of it since stands beside it in a small document:
that it left the view, or what is shown in its place.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any

import msgspec

from ctxgc.core import (
    SEGMENT_FIELDS,
    ContextSegment,
    Format,
    Message,
    segment_from_dict,
    segment_to_dict,
)
from ctxgc.errors import StoreDamagedError
from ctxgc.session.view import Gone
from ctxgc.stores import CollectionName, Drop, Put, Store, Write
from ctxgc.wire import parse

# -- Messages as documents, byte for byte


def message_to_doc(message: Message) -> dict[str, Any]:
    """Return a message as a document: its bytes where it came as bytes, else its data."""
    doc: dict[str, Any] = {
        "message_id": message.message_id,
        "format": message.format,
        "origin": message.origin,
    }
    if message.source is not None:
        return {**doc, "source": base64.b64encode(message.source).decode()}
    return {**doc, "data": json.dumps(message.data)}


def message_from_doc(doc: Mapping[str, Any]) -> Message:
    """Return the message that a document holds.

    Raises:
        StoreDamagedError: the document is not one that `message_to_doc` made.
    """
    try:
        format_: Format = doc["format"]
        source = doc.get("source")
        raw = base64.b64decode(source) if source is not None else json.loads(doc["data"])
        message = parse(raw, format_, doc["message_id"])
        return msgspec.structs.replace(message, origin=doc["origin"])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreDamagedError(
            f"a stored message cannot be read: {error}",
            hint="restore the store from a checkpoint or a copy",
            message_id=str(doc.get("message_id")),
        ) from None


SHOWN = "shown:"
GONE = "gone:"


class Archive:
    """The documents of one session."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.store = store
        self.session_id = session_id
        self.revision = store.revision(session_id)
        self._pending: dict[tuple[CollectionName, str], Write] = {}
        self._headers: dict[str, ContextSegment] = {}
        self._state: dict[str, Any] = {}

    @property
    def is_known(self) -> bool:
        """Whether the store holds this session already."""
        return self.revision > 0

    @property
    def is_pending(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._pending)

    def later(self, *writes: Write) -> None:
        """Write these with the next commit; a later write of the same document wins."""
        for write in writes:
            self._pending[write.collection, write.key] = write

    def commit(self, *more: Write) -> None:
        """Write all that is pending and these, durably and in one piece.

        Raises:
            StoreError: nothing was written; what was pending still is.
        """
        writes = dict(self._pending)
        writes.update({(write.collection, write.key): write for write in more})
        if writes:
            batch = list(writes.values())
            self.revision = self.store.commit(self.session_id, batch, expect=self.revision)
            self._pending.clear()

    def note_state(self, key: str, state: dict[str, Any]) -> None:
        """Write a document of state, unless it is what was last written."""
        if self._state.get(key) != state:
            self._state[key] = state
            self.later(Put("state", key, state))

    def remember(self, segment: ContextSegment) -> None:
        """Know that a segment is written as it is here."""
        self._headers[segment.segment_id] = segment

    def note_segments(
        self, segments: Iterable[ContextSegment], handle_of: Callable[[str], str]
    ) -> None:
        """Write the segments whose header changed since they were last written."""
        for segment in segments:
            if self._headers.get(segment.segment_id) != segment:
                self.remember(copy(segment))
                self.later(segment_write(segment, handle_of(segment.segment_id)))

    def drop_segment(self, segment_id: str) -> None:
        """Forget a deleted segment."""
        self._headers.pop(segment_id, None)
        self.later(Drop("segments", segment_id))

    def load_segments(self) -> list[ContextSegment]:
        """Return all segments as they were last written."""
        found = []
        for _, doc in self.store.load(self.session_id, "segments"):
            segment = segment_from_dict({k: v for k, v in doc.items() if k in SEGMENT_FIELDS})
            self.remember(copy(segment))
            found.append(segment)
        return found

    def load_state(self, key: str = "session") -> dict[str, Any]:
        """Return a document of state; empty when there is none."""
        return self.store.get(self.session_id, "state", key) or {}


def segment_write(segment: ContextSegment, handle: str) -> Put:
    """Return the write of a segment with its handle."""
    doc = segment_to_dict(segment)
    doc["handle"] = handle
    return Put("segments", segment.segment_id, doc, flat=True)


def arrival_write(message: Message, place: float, **more: Any) -> Put:
    """Return the write of a message as it came in, with its place; `more` goes in too."""
    return Put("messages", message.message_id, {**message_to_doc(message), "place": place, **more})


def form_writes(message_id: str, shown: Message | None, left: Gone | None) -> tuple[Write, Write]:
    """Return the writes that say what is in a message's place now.

    Args:
        message_id: of the message.
        shown: what is in the view, or None when nothing is.
        left: the message as it came in; None when that is what is shown.
    """
    gone, edited = f"{GONE}{message_id}", f"{SHOWN}{message_id}"
    if left is None:
        return Drop("messages", gone), Drop("messages", edited)
    marks = {"segment_ids": list(left.segment_ids), "together": list(left.together)}
    if shown is None:
        return Put("messages", gone, marks, flat=True), Drop("messages", edited)
    doc = {**message_to_doc(shown), **marks}
    return Drop("messages", gone), Put("messages", edited, doc, flat=True)
