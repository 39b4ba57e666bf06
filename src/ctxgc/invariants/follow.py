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
        last = len(messages) - 1
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=message.message_id,
                text="the thinking is not followed by what it led to",
                provider_error=_ERRORS[message.format].format(id=message.data.get("id", "")),
                fix="take the thinking out of the view",
                pending=index == last,
            )
            for index, message in enumerate(messages)
            if leads_nowhere(messages, index)
        ]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that do not part thinking from what follows it."""
        last = len(messages) - 1
        spans = [
            (index, index + 1)
            for index, message in enumerate(messages)
            if index < last and ends_in_thinking(message)
        ]
        return positions_outside(spans, len(messages))


def leads_nowhere(messages: Sequence[Message], index: int) -> bool:
    """Tell whether a message ends in thinking that no assistant message continues."""
    if not ends_in_thinking(messages[index]):
        return False
    return index + 1 == len(messages) or messages[index + 1].role != "assistant"


def ends_in_thinking(message: Message) -> bool:
    """Tell whether a message needs the one after it because its last part is thinking."""
    if message.role != "assistant" or not message.parts:
        return False
    if message.format == "responses":
        return is_thinking(message)
    return message.format == "anthropic" and message.parts[-1].kind == "thinking"
