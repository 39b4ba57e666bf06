"""P14: the history begins the way its provider demands."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.violation import Invariant, Violation


class UserSpeaksFirst(Invariant):
    """Anthropic wants the user to begin. Messages of equal role it joins by itself."""

    id = "P14.first"
    sentence = "The first message comes from the user."
    formats = ("anthropic",)

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the first message if it is not the user's."""
        first = first_spoken(messages)
        if first is None or messages[first].role == "user":
            return []
        return [
            Violation(
                promise=self.id,
                index=first,
                message_id=messages[first].message_id,
                text=f"the first message has the role {messages[first].role!r}",
                provider_error='messages: first message must use the "user" role',
                fix="put a short notice of the user role in front",
            )
        ]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions behind which the user speaks next, and the end."""
        free, next_role = [len(messages)], "user"
        for index in range(len(messages) - 1, -1, -1):
            if messages[index].role != "system":
                next_role = messages[index].role
            if next_role == "user":
                free.append(index)
        return frozenset(free)


def first_spoken(messages: Sequence[Message]) -> int | None:
    """Return the index of the first message that is not a system entry."""
    return next((i for i, message in enumerate(messages) if message.role != "system"), None)
