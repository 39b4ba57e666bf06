"""The documents of messages: each as it came in, and what the view shows of it since.

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
from ctxgc.stores import Drop, Put, Write
from ctxgc.wire import parse

SHOWN = "shown:"
GONE = "gone:"

Docs = dict[str, dict[str, Any]]


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
