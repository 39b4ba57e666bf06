"""P1: the results of a batch stand directly behind it."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import Pairing, Ref, pair
from ctxgc.invariants.violation import Invariant, Violation

_ERRORS = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding "
    "to each 'tool_call_id'.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {id}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
}


class ResultsFollowTheirBatch(Invariant):
    """All results of a batch follow at once; Anthropic wants them first in the next user message.

    The Responses format pairs by id alone: its results may come later.
    """

    id = "P1.batch"
    sentence = "The results of a batch of calls follow it directly, with nothing between."
    formats = ("openai", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the results that stand elsewhere than behind their call."""
        return [
            Violation(
                promise=self.id,
                index=result.message,
                message_id=messages[result.message].message_id,
                call_id=result.call_id,
                text=f"the result {result.call_id!r} does not stand directly behind its call "
                f"in message {call.message}",
                provider_error=_ERRORS[messages[result.message].format].format(id=result.call_id),
                fix="move the result next to its call",
            )
            for call, result in misplaced(messages, pair(messages))
        ]


def misplaced(messages: Sequence[Message], pairing: Pairing) -> list[tuple[Ref, Ref]]:
    """Return the calls whose result stands where its provider refuses it, with the result."""
    homes = homes_of_results(messages)
    wrong = [
        (call, result)
        for call, result in pairing.pairs()
        if messages[result.message].format != "responses"
        and (homes[result.message] != call.message or _behind_other_parts(messages, result))
    ]
    return sorted(wrong, key=lambda refs: refs[1])


def homes_of_results(messages: Sequence[Message]) -> list[int]:
    """Return for each message the message whose calls it may answer.

    In the OpenAI format that is the message before the run of `tool` messages it stands in; in the
    Anthropic format the message before it. System entries between Anthropic messages do not count.
    """
    homes, before = [], -1
    for index, message in enumerate(messages):
        homes.append(before)
        if not _is_passed_over(message):
            before = index
    return homes


def _is_passed_over(message: Message) -> bool:
    return message.role == ("system" if message.format == "anthropic" else "tool")


def _behind_other_parts(messages: Sequence[Message], result: Ref) -> bool:
    message = messages[result.message]
    if message.format != "anthropic":
        return False
    return any(part.kind != "tool_result" for part in message.parts[: result.part])
