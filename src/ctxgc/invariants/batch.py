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
    """All results of a batch follow at once.

    Anthropic wants them in front of all else that the user says next; it reads consecutive
    messages of one role as one, and system entries between them as none. The Responses format
    pairs by id alone: its results may come later.
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
    if not messages or messages[0].format == "responses":
        return []
    layout = _anthropic_turns if messages[0].format == "anthropic" else _openai_turns
    turns, homes = layout(messages)
    wrong = [
        (call, result)
        for call, result in pairing.pairs()
        if homes[result.message] != turns[call.message]
        or (result.part and _is_behind(messages, result))
    ]
    return sorted(wrong, key=lambda refs: refs[1])


def _openai_turns(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return each message's own number, and that of the message whose calls it may answer."""
    homes, before = [], -1
    for index, message in enumerate(messages):
        homes.append(before)
        if message.role != "tool":
            before = index
    return list(range(len(messages))), homes


def _anthropic_turns(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return the turn of each message, and the turn whose calls it may answer (else -1)."""
    turns, homes = [], []
    turn, role, only_results = 0, "", True
    for message in messages:
        if message.role not in (role, "system"):
            turn, role, only_results = turn + 1, message.role, True
        turns.append(turn)
        homes.append(turn - 1 if only_results and message.role == "user" else -1)
        if message.role != "system":
            only_results &= all(part.kind == "tool_result" for part in message.parts)
    return turns, homes


def _is_behind(messages: Sequence[Message], result: Ref) -> bool:
    """Tell whether a result stands behind something else within its message."""
    before = messages[result.message].parts[: result.part]
    return any(part.kind != "tool_result" for part in before)
