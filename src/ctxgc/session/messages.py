"""Messages as documents, byte for byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.core.message import Format, Message
from ctxgc.errors import StoreDamagedError
from ctxgc.wire import parse


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
