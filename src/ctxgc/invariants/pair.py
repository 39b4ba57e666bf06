"""P1: no call without its result, no result without its call."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import Batch, Ref, may_stay_open, pair
from ctxgc.invariants.violation import Invariant, Violation, positions_outside

_OPEN = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding "
    "to each 'tool_call_id'.",
    "responses": "No tool output found for function call {id}.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {id}.",
}
_ORPHAN = {
    "openai": "messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'.",
    "responses": "No tool call found for function call output with call_id {id}.",
    "anthropic": "unexpected `tool_use_id` found in `tool_result` blocks: {id}.",
}


class CallsAndResultsPair(Invariant):
    """Every result answers an earlier call, and every call is answered.

    An asynchronous call of the Responses format may be answered at any later time, or never.
    """

    id = "P1.pair"
    sentence = "Every tool call has its result and every result its call."

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the results without a call and the calls without a result."""
        pairing = pair(messages)
        found = [_orphan(messages[ref.message], ref) for ref in pairing.orphans]
        tail = trailing_results(messages)
        for batch in pairing.batches:
            pending = is_pending(batch, tail)
            found += [
                _unanswered(messages[ref.message], ref, pending=pending)
                for ref in batch.open_calls()
                if not may_stay_open(messages[ref.message])
            ]
        return sorted(found, key=lambda violation: violation.index)

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that part no call from its batch or its results."""
        pairing = pair(messages)
        spans = [_whole_span(batch, len(messages)) for batch in pairing.batches]
        spans += [(index, ref.message) for index, ref in pairing.referenced]
        return positions_outside(spans, len(messages))


def trailing_results(messages: Sequence[Message]) -> int:
    """Return the index from which on there is nothing but tool results."""
    tail = len(messages)
    while tail and _only_results(messages[tail - 1]):
        tail -= 1
    return tail


def is_pending(batch: Batch, tail: int) -> bool:
    """Tell whether a batch stands at the very end, so that its results may still come."""
    return batch.last == tail - 1


def _only_results(message: Message) -> bool:
    if message.role == "system":
        return message.format == "anthropic"
    return bool(message.parts) and all(
        part.kind == "tool_result" and not part.server_side for part in message.parts
    )


def _whole_span(batch: Batch, length: int) -> tuple[int, int]:
    first, last = batch.span()
    return (first, length - 1) if batch.open_calls() else (first, last)


def _orphan(message: Message, ref: Ref) -> Violation:
    return Violation(
        promise=CallsAndResultsPair.id,
        index=ref.message,
        message_id=message.message_id,
        call_id=ref.call_id,
        text=f"the result {ref.call_id!r} answers no earlier call",
        provider_error=_ORPHAN[message.format].format(id=ref.call_id),
        fix="move the result behind its call; without a call, take it out of the view",
    )


def _unanswered(message: Message, ref: Ref, *, pending: bool) -> Violation:
    return Violation(
        promise=CallsAndResultsPair.id,
        index=ref.message,
        message_id=message.message_id,
        call_id=ref.call_id,
        text=f"the call {ref.call_id!r} has no result",
        provider_error=_OPEN[message.format].format(id=ref.call_id),
        fix="add a result that says the call was interrupted",
        pending=pending,
    )
