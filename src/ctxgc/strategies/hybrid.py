"""gc_hybrid: recent turns stay, middle ones are summarised, ancient ones go."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ctxgc.collector import CollectionRun, TurnSpan
from ctxgc.strategies.builtin import StrategyOptions
from ctxgc.strategies.summarize import (
    SummaryOptions,
    SummaryStrategy,
    replace_by_summary,
    shorten_summaries,
    withdraw_summaries,
)
from ctxgc.strategies.truncate import drop_turns, hold_turn_limit


class HybridOptions(SummaryOptions, frozen=True, kw_only=True):
    """`summarize_middle_turns` says how many turns before the recent ones become summaries."""

    summarize_middle_turns: Annotated[int, Meta(ge=0)] | None = None


class HybridStrategy(SummaryStrategy):
    """Generational: truncates the ancient, summarises the middle, never touches the recent.

    Without a summarizer the middle turns are truncated too.
    """

    name: ClassVar[str] = "gc_hybrid"
    options: ClassVar[type[StrategyOptions]] = HybridOptions

    def shrink(self, run: CollectionRun) -> None:
        """Remove ancient turns first; summarise middle ones only while the target is unmet."""
        ancient, middle = self._generations(run)
        drop_turns(run, ancient, "ancient_truncated")
        free = [run.free_ids(turn.places()) for turn in middle]
        if run.excess <= 0:
            free = list(filter(run.requests_in, free))[: run.excess_turns]
        if self._summaries.has_model and free:
            ids = [message_id for ids in free for message_id in ids]
            replace_by_summary(run, ids, self._summaries, "middle_summarized")
        if run.excess > 0:
            drop_turns(run, middle, "middle_truncated")
        if run.excess > 0 and run.under_pressure:
            shorten_summaries(run)
        if run.excess > 0 and run.under_pressure:
            withdraw_summaries(run)
        hold_turn_limit(run)

    def _generations(self, run: CollectionRun) -> tuple[list[TurnSpan], list[TurnSpan]]:
        given = self._options
        own = given.summarize_middle_turns if isinstance(given, HybridOptions) else None
        wanted = run.config.summarize_middle_turns if own is None else own
        old = run.turns[: max(0, len(run.turns) - run.preserve)]
        split = max(0, len(old) - (wanted or 0))
        return old[:split], old[split:]
