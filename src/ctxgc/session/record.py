"""The record of an applied collection: enough to undo it, also after a restart."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.core.message import Message
from ctxgc.session.messages import message_from_doc, message_to_doc


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What one collection did to the view: messages as they were, and the ids that it added."""

    number: int
    before: tuple[Message, ...]
    added: tuple[str, ...]

    def to_doc(self) -> dict[str, Any]:
        """Return the record as a document."""
        return {
            "number": self.number,
            "before": [message_to_doc(message) for message in self.before],
            "added": list(self.added),
        }

    @classmethod
    def from_doc(cls, doc: dict[str, Any]) -> Applied:
        """Return the record that a document holds."""
        return cls(
            number=doc["number"],
            before=tuple(message_from_doc(each) for each in doc["before"]),
            added=tuple(doc["added"]),
        )
