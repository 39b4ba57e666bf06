"""The documents of messages: each as it came in, and what the view shows of it since; how one is read.

A message is stored under its id. Next to it, under `gone:ID` or `shown:ID`, is what became of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.core import Format, Message
from ctxgc.errors import StoreDamagedError
from ctxgc.session.view import Original
from ctxgc.stores import CollectionName, Drop, Put, Store, Write
from ctxgc.wire import parse

SHOWN = "shown:"
GONE = "gone:"

Docs = dict[str, dict[str, Any]]
Pending = dict[tuple[CollectionName, str], Write]
"""What the next commit writes, by the collection and the key of the document."""


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


def form_writes(
    message_id: str, shown: Message | None, original: Original | None
) -> tuple[Write, Write]:
    """Return the writes that say what the view shows in the place of a message.

    Args:
        message_id: of the message.
        shown: what is in the view, or None when nothing is.
        original: the message as it came in; None when that is what is shown.
    """
    gone, edited = f"{GONE}{message_id}", f"{SHOWN}{message_id}"
    if original is None:
        return Drop("messages", gone), Drop("messages", edited)
    marks = {"segment_ids": list(original.segment_ids), "together": list(original.together)}
    if shown is None:
        return Put("messages", gone, marks, flat=True), Drop("messages", edited)
    doc = {**message_to_doc(shown), **marks}
    return Drop("messages", gone), Put("messages", edited, doc, flat=True)


def is_arrival(key: str, doc: dict[str, Any]) -> bool:
    """Return whether a document holds a message as it came in, not deleted since."""
    return not key.startswith((GONE, SHOWN)) and "format" in doc


class StoredParts:
    """Reads the texts and messages of a session that are not in memory, as the next commit leaves them.

    Segments hold on to it, and Python's cycle collector does not look into segments: what this refers to may
    not lead back to them, or no session would ever be let go of.
    """

    def __init__(self, store: Store, session_id: str, pending: Pending) -> None:
        self._store = store
        self._session_id = session_id
        self._pending = pending

    def message(self, message_id: str) -> Message:
        """Return a message as it came in.

        Raises:
            StoreDamagedError: the store does not have it.
        """
        doc = self._latest("messages", message_id)
        if doc is None:
            raise self._missing("message", message_id)
        return message_from_doc(doc)

    def text(self, segment_id: str) -> str:
        """Return the text of a segment.

        Raises:
            StoreDamagedError: the store does not have it.
        """
        doc = self._latest("segments", segment_id)
        if doc is None or not isinstance(doc.get("text"), str):
            raise self._missing("segment", segment_id)
        return str(doc["text"])

    def _latest(self, collection: CollectionName, key: str) -> dict[str, Any] | None:
        pending = self._pending.get((collection, key))
        if isinstance(pending, Put):
            return pending.doc
        return self._store.get(self._session_id, collection, key)

    def _missing(self, what: str, key: str) -> StoreDamagedError:
        return StoreDamagedError(
            f"the store does not have the {what} '{key}' any more",
            hint="restore the store from a copy; ctxgc doctor --store names what is missing",
            session_id=self._session_id,
            key=key,
        )
