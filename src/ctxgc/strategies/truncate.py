"""gc_truncate: the oldest turns go, until the target is met."""

from __future__ import annotations

from typing import ClassVar

from ctxgc.collector import CollectionRun, TurnSpan
from ctxgc.core import Evidence
from ctxgc.strategies.builtin import BuiltinStrategy


class TruncateStrategy(BuiltinStrategy):
    """The simplest and fastest: removes the oldest turns entirely."""

    name: ClassVar[str] = "gc_truncate"

    def shrink(self, run: CollectionRun) -> None:
        """Remove turns, oldest first."""
        drop_turns(run, run.turns, "truncated")
        hold_turn_limit(run)


def drop_turns(
    run: CollectionRun, turns: list[TurnSpan], reason: str, *, by_size: bool = True
) -> None:
    """Remove turns, oldest first, until size and number, or the number alone, are within their limits."""
    over = run.excess_turns
    for turn in turns:
        too_large = by_size and run.excess > 0
        if not too_large and over <= 0:
            return
        free = run.free_ids(turn.places())
        requests = run.requests_in(free)
        if too_large or requests:
            evidence = _too_large(run) if too_large else _too_many(run)
            run.draft.remove_all(free, evidence, reason)
            over -= requests


def hold_turn_limit(run: CollectionRun) -> None:
    """Remove turns, oldest first, while there are more than `max_turns`; if need be recent ones too."""
    drop_turns(run, run.turns, "turn_limit", by_size=False)
    if run.turns_over:
        run.release_recent_turns()
        drop_turns(run, run.turns, "turn_limit", by_size=False)


def _too_large(run: CollectionRun) -> Evidence:
    return Evidence(kind="oldest", tokens=run.excess)


def _too_many(run: CollectionRun) -> Evidence:
    return Evidence(kind="turn_limit", how=f"more than {run.config.max_turns} turns")
