"""P2: thinking is followed by what it led to."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import is_thinking
from ctxgc.invariants.violation import Invariant, Violation, positions_outside

_ERRORS = {
    "responses": "Item '{id}' of type 'reasoning' was provided without its required following "
    "item.",
    "anthropic": "The final block in an assistant message cannot be `thinking`.",
}


class ThinkingIsFollowed(Invariant):
    """A reasoning item belongs to the item after it; an Anthropic answer does not end in thinking.

    Anthropic joins assistant messages that follow each other, so the next one may complete it.
    """

    id = "P2.follow"
    sentence = "Thinking is followed by the answer or the call that it led to."
    formats = ("responses", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the thinking that leads nowhere."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=messages[index].message_id,
                text="the thinking is not followed by what it led to",
                provider_error=_ERRORS[messages[index].format].format(
                    id=messages[index].data.get("id", "")
                ),
                fix="take the thinking out of the view",
                pending=after is None,
            )
            for index, after in followers(messages)
            if after is None or messages[after].role != "assistant"
        ]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that do not part thinking from what follows it."""
        spans = [(index, after) for index, after in followers(messages) if after is not None]
        return positions_outside(spans, len(messages))


def followers(messages: Sequence[Message]) -> list[tuple[int, int | None]]:
    """Return each message that ends in thinking with the message that comes next, if any.

    System entries between Anthropic messages do not count.
    """
    found: list[tuple[int, int | None]] = []
    after: int | None = None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "system" and message.format == "anthropic":
            continue
        if _ends_in_thinking(message):
            found.append((index, after))
        after = index
    return found[::-1]


def _ends_in_thinking(message: Message) -> bool:
    if message.role != "assistant" or not message.parts:
        return False
    if message.format == "responses":
        return is_thinking(message)
    return message.format == "anthropic" and message.parts[-1].kind == "thinking"
