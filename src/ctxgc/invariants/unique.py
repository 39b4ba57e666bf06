"""P14: no item stands twice in a history."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import is_reference
from ctxgc.invariants.violation import Invariant, Violation


class ItemsAreUnique(Invariant):
    """The Responses format names its items; a second item of one id is refused."""

    id = "P14.unique"
    sentence = "No item of a history stands in it twice."
    formats = ("responses",)

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the items whose id an earlier item has."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=messages[index].message_id,
                text=f"an earlier item has the id {messages[index].data['id']!r} too",
                provider_error=f"Duplicate item found with id {messages[index].data['id']}.",
                fix="keep the first and take the other out of the view",
            )
            for index in repeated_items(messages)
        ]


def repeated_items(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the items whose id stands earlier in the history."""
    seen: set[str] = set()
    repeated = []
    for index, message in enumerate(messages):
        item_id = message.data.get("id")
        if not isinstance(item_id, str) or is_reference(message) or _names_its_call(message):
            continue
        if item_id in seen:
            repeated.append(index)
        seen.add(item_id)
    return repeated


def _names_its_call(message: Message) -> bool:
    """Tell whether an item's `id` is that of the call it answers, as local shells have it."""
    return message.data.get("type") == "local_shell_call_output"
