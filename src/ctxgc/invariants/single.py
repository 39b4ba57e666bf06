"""P1: one result per call, one call per id in a batch."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import pair
from ctxgc.invariants.violation import Invariant, Violation

_RESULTS = {
    "openai": "Duplicate value for 'tool_call_id' of '{id}'.",
    "responses": "Duplicate tool output found for function call {id}.",
    "anthropic": "each tool_use must have a single result. Found multiple `tool_result` blocks "
    "with id: {id}",
}
_CALLS = {
    "openai": "Duplicate value for 'tool_calls.id' of '{id}'.",
    "responses": "Duplicate item found with call_id {id}.",
    "anthropic": "`tool_use` ids must be unique: {id}",
}


class OneResultPerCall(Invariant):
    """No call is answered twice, and no batch uses an id twice."""

    id = "P1.single"
    sentence = "Every call has one result, and no two calls of a batch share an id."

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return second results and repeated call ids."""
        pairing = pair(messages)
        found = [
            self._breach(messages[ref.message], ref.message, ref.call_id, second_result=True)
            for ref in pairing.extras
        ]
        found += [
            self._breach(messages[ref.message], ref.message, ref.call_id, second_result=False)
            for ref in pairing.repeats
        ]
        return sorted(found, key=lambda violation: violation.index)

    def _breach(
        self, message: Message, index: int, call_id: str | None, *, second_result: bool
    ) -> Violation:
        errors = _RESULTS if second_result else _CALLS
        what = "a second result answers the call" if second_result else "two calls share the id"
        return Violation(
            promise=self.id,
            index=index,
            message_id=message.message_id,
            call_id=call_id,
            text=f"{what} {call_id!r}",
            provider_error=errors[message.format].format(id=call_id),
            fix="keep the first and take the other out of the view",
        )
