"""P1: a tool that the provider runs keeps its call and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxgc.core.message import Message, Part
from ctxgc.invariants.blocks import block_of
from ctxgc.invariants.pair import trailing_results
from ctxgc.invariants.pairs import Ref, answers, is_reference
from ctxgc.invariants.violation import Invariant, Violation, positions_outside

# Items of the Responses format that an item of their own answers; other tools answer within.
_ANSWERED = ("program", "tool_search_call", "mcp_approval_request")


class ServerPairing(NamedTuple):
    """The provider's own calls with their results, and what has no partner.

    `strays` are calls and results of a program that is not in the history.
    """

    pairs: list[tuple[Ref, Ref]]
    orphans: list[Ref]
    open_calls: list[Ref]
    strays: list[Ref]


class ServerToolsPair(Invariant):
    """Providers want both the call and the result of a tool that they run.

    Anthropic's result usually stands in the same answer; a program that calls the client's tools
    gets it in a later one. A call at the very end has its result still to come: the provider goes
    on with it when the history is sent.
    """

    id = "P1.server"
    sentence = "Every tool that the provider ran keeps its call and its result."
    formats = ("responses", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the server tool blocks without a partner."""
        pairing = server_pairs(messages)
        last = last_answer(messages)
        going_on = running(messages, pairing)
        found = [
            self._breach(messages, ref, "call has no result", pending=ref.message >= last)
            for ref in pairing.open_calls
            if ref not in going_on
        ]
        found += [self._breach(messages, ref, "result has no call") for ref in pairing.orphans]
        found += [self._breach(messages, ref, "program is gone") for ref in pairing.strays]
        return sorted(found, key=lambda violation: violation.index)

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that part no server tool from its result."""
        pairing = server_pairs(messages)
        spans = [(call.message, result.message) for call, result in pairing.pairs]
        spans += [(call.message, len(messages) - 1) for call in pairing.open_calls]
        return positions_outside(spans, len(messages))

    def _breach(
        self, messages: Sequence[Message], ref: Ref, what: str, *, pending: bool = False
    ) -> Violation:
        wanted = "tool_result" if what.startswith("call") else "server_tool_use"
        return Violation(
            promise=self.id,
            index=ref.message,
            message_id=messages[ref.message].message_id,
            call_id=ref.call_id,
            text=f"the server tool {ref.call_id!r}: its {what}",
            provider_error=f"tool use with id `{ref.call_id}` was found without a corresponding "
            f"`{wanted}` block",
            fix="take the block out of the view",
            pending=pending,
        )


def server_pairs(messages: Sequence[Message]) -> ServerPairing:
    """Match the provider's own calls and results: the nearest earlier open call of the id."""
    pairing = ServerPairing([], [], [], [])
    waiting: dict[str | None, list[Ref]] = {}
    knows_all = True
    for index, message in enumerate(messages):
        # What a reference stands for may have made the call of any result behind it.
        knows_all = knows_all and not is_reference(message)
        for place, part in enumerate(message.parts):
            ref = Ref(index, place, part.call_id)
            owner = owner_of(message, part)
            if owner is not None and owner not in waiting and knows_all:
                pairing.strays.append(ref)
            elif awaits_result(message, part):
                waiting.setdefault(part.call_id, []).append(ref)
            elif part.kind == "tool_result" and part.server_side:
                if waiting.get(part.call_id):
                    pairing.pairs.append((waiting[part.call_id].pop(), ref))
                elif knows_all:
                    pairing.orphans.append(ref)
    pairing.open_calls.extend(sorted(ref for refs in waiting.values() for ref in refs))
    return pairing


def awaits_result(message: Message, part: Part) -> bool:
    """Tell whether a part is a call of the provider's own whose result is a part of its own."""
    if part.kind != "tool_call" or not part.server_side:
        return False
    return message.format != "responses" or message.data.get("type") in _ANSWERED


def follow(message: Message, owed: set[str | None]) -> None:
    """Keep up the ids whose results the provider owes; a program's may come many messages later."""
    for part in message.parts:
        if awaits_result(message, part):
            owed.add(part.call_id)
        elif part.server_side and part.kind == "tool_result":
            owed.discard(part.call_id)


def owner_of(message: Message, part: Part) -> str | None:
    """Return the id of the program that made a call or got its result; None if none did."""
    block = block_of(message, part) if part.call_id is not None else None
    caller = block.get("caller") if isinstance(block, dict) else None
    owner = caller.get("caller_id", caller.get("tool_id")) if isinstance(caller, dict) else None
    return owner if isinstance(owner, str) else None


def running(messages: Sequence[Message], pairing: ServerPairing) -> frozenset[Ref]:
    """Return the open calls at the very end, which the provider goes on with when they are sent.

    Behind the last answer there are at most results of the client, for a program that asked for
    them. A text behind a call says that the provider was done with it; a request for approval waits
    all the same.
    """
    spans = answers(messages) if pairing.open_calls else []
    if not spans or trailing_results(messages) != spans[-1][1] + 1:
        return frozenset()
    first, last = spans[-1]
    tail = [(n, place, part) for n in range(first, last + 1)
            for place, part in enumerate(messages[n].parts)]  # fmt: skip
    asked = {owner_of(messages[n], part) for n, _, part in tail} - {None}
    spoke = max(((n, place) for n, place, part in tail if part.kind == "text"), default=(-1, 0))
    return frozenset(
        ref
        for ref in pairing.open_calls
        if ref.call_id in asked
        or (ref.message >= first and (ref[:2] > spoke or _asks(messages[ref.message])))
    )


def _asks(message: Message) -> bool:
    return message.data.get("type") == "mcp_approval_request"


def last_answer(messages: Sequence[Message]) -> int:
    """Return where the model's last answer begins; the length if it gave none."""
    spans = answers(messages)
    return spans[-1][0] if spans else len(messages)
