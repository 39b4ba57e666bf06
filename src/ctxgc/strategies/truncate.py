"""gc_truncate: the oldest turns go, until the target is met."""

from __future__ import annotations

from typing import ClassVar

from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy, CollectionRun
from ctxgc.strategies.host import TurnSpan


class TruncateStrategy(BuiltinStrategy):
    """The simplest and fastest: removes the oldest turns entirely."""

    name: ClassVar[str] = "gc_truncate"
    constraints: ClassVar[Constraints] = Constraints(monotone=True)

    def shrink(self, run: CollectionRun) -> None:
        """Remove turns, oldest first."""
        drop_turns(run, run.turns, "truncated")


def drop_turns(run: CollectionRun, turns: list[TurnSpan], reason: str) -> None:
    """Remove turns, oldest first, until size and number are within their limits."""
    gone = 0
    for turn in turns:
        if run.excess <= 0 and gone >= run.excess_turns:
            return
        if run.excess <= 0 and not run.can_leave(turn):
            continue
        gone += run.can_leave(turn)
        run.draft.remove_all(run.free_ids(turn.places()), reason)
