"""Turns: a user message that is not a tool result, and everything up to the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ctxgc.core.message import Message
from ctxgc.invariants.violation import positions_outside


class Turn(msgspec.Struct, frozen=True):
    """One turn: its number and the places of its messages in the history."""

    index: int
    start: int
    stop: int

    def places(self) -> range:
        """Return where its messages stand."""
        return range(self.start, self.stop)


def opens_turn(message: Message) -> bool:
    """Tell whether the user says something here; a summary or notice of ours is no turn."""
    if message.role != "user" or message.origin != "conversation":
        return False
    return message.opens_turn()


def turns_of(history: Sequence[Message], groups: Iterable[tuple[int, ...]]) -> list[Turn]:
    """Return the turns of a history; what stands before the first belongs to none.

    A turn never starts inside a group: a message that also answers a tool call stays with the turn of
    that call.
    """
    legal = positions_outside(((group[0], group[-1]) for group in groups), len(history))
    users = [(i, message) for i, message in enumerate(history) if message.role == "user"]
    starts = [i for i, message in users if opens_turn(message) and i in legal]
    stops = [*starts[1:], len(history)] if starts else []
    return [Turn(n, start, stop) for n, (start, stop) in enumerate(zip(starts, stops, strict=True))]
