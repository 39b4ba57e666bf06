"""gc_hybrid: recent turns stay, middle ones are summarised, ancient ones go."""

from __future__ import annotations

from typing import Any, ClassVar

from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.collection import Workbench
from ctxgc.strategies.host import TurnSpan
from ctxgc.strategies.summarize import (
    Summaries,
    replace_by_summary,
    shorten_summaries,
    withdraw_summaries,
)
from ctxgc.strategies.truncate import drop_turns
from ctxgc.summarizers import resolve_summarizer


class HybridStrategy(BuiltinStrategy):
    """Generational: truncates the ancient, summarises the middle, never touches the recent."""

    name: ClassVar[str] = "gc_hybrid"
    constraints: ClassVar[Constraints] = Constraints()

    def __init__(self) -> None:
        super().__init__()
        self._summaries = Summaries(None)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take options; without a `summarizer` the middle turns are truncated too."""
        super().initialize(config)
        self._summaries = Summaries(resolve_summarizer(self._options.summarizer))

    def shrink(self, bench: Workbench) -> None:
        """Remove ancient turns first; summarise middle ones only while the target is unmet."""
        ancient, middle = self._generations(bench)
        drop_turns(bench, ancient, "ancient_truncated")
        if bench.excess <= 0:
            return
        if self._summaries.has_model:
            ids = [i for turn in middle for i in bench.free_ids(turn.places())]
            replace_by_summary(bench, ids, self._summaries, "middle_summarized")
        if bench.excess > 0:
            drop_turns(bench, middle, "middle_truncated")
        if bench.excess > 0 and bench.under_pressure:
            shorten_summaries(bench)
        if bench.excess > 0 and bench.under_pressure:
            withdraw_summaries(bench)

    def _generations(self, bench: Workbench) -> tuple[list[TurnSpan], list[TurnSpan]]:
        own = self._options.summarize_middle_turns
        wanted = bench.config.summarize_middle_turns if own is None else own
        old = bench.turns[: max(0, len(bench.turns) - bench.preserve)]
        split = max(0, len(old) - (wanted or 0))
        return old[:split], old[split:]
