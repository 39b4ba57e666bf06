"""The archive: a session in its store, so that a restarted process goes on where this one was.

What is written durably before the view changes: the stashed segments and the messages as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ctxgc.core.codec import segment_from_dict, segment_to_dict
from ctxgc.core.message import Message
from ctxgc.core.segment import SEGMENT_FIELDS, ContextSegment
from ctxgc.session.messages import message_from_doc, message_to_doc
from ctxgc.session.view import View
from ctxgc.stores import Collection, Drop, Put, Store

Write = Put | Drop


class Archive:
    """The documents of one session."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.store = store
        self.session_id = session_id
        self.revision = store.revision(session_id)
        self._pending: dict[tuple[Collection, str], Write] = {}
        self._headers: dict[str, ContextSegment] = {}

    @property
    def is_known(self) -> bool:
        """Whether the store holds this session already."""
        return self.revision > 0

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

    def note_segments(
        self, segments: Iterable[ContextSegment], handle_of: Callable[[str], str]
    ) -> None:
        """Write the segments whose header changed since they were last written."""
        for segment in segments:
            if self._headers.get(segment.segment_id) != segment:
                self._headers[segment.segment_id] = msgspec.structs.replace(segment)
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
            self._headers[segment.segment_id] = msgspec.structs.replace(segment)
            found.append(segment)
        return found

    def load_messages(self) -> dict[str, tuple[Message, dict[str, Any]]]:
        """Return all messages by their key, each with what else its document says."""
        rows = self.store.load(self.session_id, "messages")
        return {key: (message_from_doc(doc), doc) for key, doc in rows}

    def load_state(self) -> dict[str, Any]:
        """Return the state document."""
        return self.store.get(self.session_id, "state", "session") or {}


def segment_write(segment: ContextSegment, handle: str) -> Put:
    """Return the write of a segment with its handle."""
    return Put("segments", segment.segment_id, {**segment_to_dict(segment), "handle": handle})


def message_write(view: View, message: Message, **more: Any) -> Put:
    """Return the write of a message with its place; `more` goes into the document too."""
    doc = {
        **message_to_doc(message),
        "place": view.place_of(message.message_id),
        "in_view": True,
        **more,
    }
    return Put("messages", message.message_id, doc)
