"""The record of an applied collection: enough to undo it, also after a restart."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Any

import msgspec

from ctxgc.core import Message
from ctxgc.session.archive import message_from_doc, message_to_doc


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What one collection did to the view: messages as they were, and the ids that it added.

    `places` has those of the notices that left, which are kept nowhere else.
    """

    number: int
    before: tuple[Message, ...]
    added: tuple[str, ...]
    places: dict[str, float]

    def without(self, message_ids: Collection[str]) -> Applied:
        """Return the record as if these messages had had no part in the collection."""
        rest = tuple(m for m in self.before if m.message_id not in message_ids)
        return msgspec.structs.replace(self, before=rest)

    def to_doc(self, edited: Container[str]) -> dict[str, Any]:
        """Return the record as a document; messages that are stored as they were are only named.

        Args:
            edited: ids of the messages that were not in the view as they came in.
        """
        before = [
            message_to_doc(m)
            if m.message_id in edited or m.origin == "gc_notice"
            else {"message_id": m.message_id}
            for m in self.before
        ]
        added, places = list(self.added), dict(self.places)
        return {"before": before, "added": added, "places": places}

    @classmethod
    def from_doc(
        cls, number: int, doc: Mapping[str, Any], arrived: Mapping[str, Message]
    ) -> Applied:
        """Return the record that a document holds; messages deleted since are left out."""
        before = (
            message_from_doc(each) if "format" in each else arrived.get(each["message_id"])
            for each in doc["before"]
        )
        return cls(
            number=number,
            before=tuple(message for message in before if message is not None),
            added=tuple(doc["added"]),
            places=doc["places"],
        )
