"""gc_truncate: the oldest turns go, until the target is met."""

from __future__ import annotations

from typing import ClassVar

from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.collection import Workbench
from ctxgc.strategies.host import TurnSpan


class TruncateStrategy(BuiltinStrategy):
    """The simplest and fastest: removes the oldest turns entirely."""

    name: ClassVar[str] = "gc_truncate"
    constraints: ClassVar[Constraints] = Constraints(monotone=True)

    def shrink(self, bench: Workbench) -> None:
        """Remove turns, oldest first."""
        drop_turns(bench, bench.turns, "truncated")


def drop_turns(bench: Workbench, turns: list[TurnSpan], reason: str) -> None:
    """Remove turns, oldest first, until size and number are within their limits."""
    gone = 0
    for turn in turns:
        if bench.excess <= 0 and gone >= bench.excess_turns:
            return
        if bench.excess <= 0 and not bench.can_leave(turn):
            continue
        gone += bench.can_leave(turn)
        bench.draft.remove_all(bench.free_ids(turn.places()), reason)
