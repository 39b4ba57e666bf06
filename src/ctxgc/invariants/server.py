"""P1: a tool that the provider runs keeps its call and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxgc.core.message import Message
from ctxgc.invariants.pairs import Ref, answers
from ctxgc.invariants.violation import Invariant, Violation, positions_outside


class ServerPairing(NamedTuple):
    """The provider's own calls with their results, and what has no partner."""

    pairs: list[tuple[Ref, Ref]]
    orphans: list[Ref]
    open_calls: list[Ref]


class ServerToolsPair(Invariant):
    """Anthropic wants both blocks of a server tool.

    The result usually stands in the same answer; a program that calls the client's tools gets it
    in a later one.
    """

    id = "P1.server"
    sentence = "Every tool that the provider ran keeps its call and its result."
    formats = ("anthropic",)

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the server tool blocks without a partner."""
        pairing = server_pairs(messages)
        last = last_answer(messages)
        found = [
            self._breach(messages[ref.message], ref, "call", pending=ref.message >= last)
            for ref in pairing.open_calls
        ]
        found += [self._breach(messages[ref.message], ref, "result") for ref in pairing.orphans]
        return sorted(found, key=lambda violation: violation.index)

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that part no server tool from its result."""
        pairing = server_pairs(messages)
        spans = [(call.message, result.message) for call, result in pairing.pairs]
        spans += [(call.message, len(messages) - 1) for call in pairing.open_calls]
        return positions_outside(spans, len(messages))

    def _breach(self, message: Message, ref: Ref, what: str, *, pending: bool = False) -> Violation:
        other = "result" if what == "call" else "call"
        return Violation(
            promise=self.id,
            index=ref.message,
            message_id=message.message_id,
            call_id=ref.call_id,
            text=f"the server tool {what} {ref.call_id!r} has no {other}",
            provider_error=f"tool use with id `{ref.call_id}` was found without a corresponding "
            f"`{'server_tool_use' if what == 'result' else 'tool_result'}` block",
            fix="take the block out of the view",
            pending=pending,
        )


def server_pairs(messages: Sequence[Message]) -> ServerPairing:
    """Match the provider's own calls and results: the nearest earlier open call of the id."""
    pairing = ServerPairing([], [], [])
    waiting: dict[str | None, list[Ref]] = {}
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if not part.server_side:
                continue
            ref = Ref(index, place, part.call_id)
            if part.kind == "tool_call":
                waiting.setdefault(part.call_id, []).append(ref)
            elif waiting.get(part.call_id):
                pairing.pairs.append((waiting[part.call_id].pop(), ref))
            else:
                pairing.orphans.append(ref)
    pairing.open_calls.extend(sorted(ref for refs in waiting.values() for ref in refs))
    return pairing


def last_answer(messages: Sequence[Message]) -> int:
    """Return where the model's last answer begins; the length if it gave none."""
    spans = answers(messages)
    return spans[-1][0] if spans else len(messages)
