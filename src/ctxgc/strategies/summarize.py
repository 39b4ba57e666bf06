"""gc_summarize: the oldest turns become one summary."""

from __future__ import annotations

from typing import Any, ClassVar

from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.summarizing import (
    EXPECTED_SHARE,
    Summaries,
    replace_by_summary,
    shorten_summaries,
    withdraw_summaries,
)
from ctxgc.strategies.truncate import drop_turns
from ctxgc.strategies.workbench import Workbench
from ctxgc.summarizers import resolve_summarizer


class SummarizeStrategy(BuiltinStrategy):
    """Compresses old turns. Without a summarizer, or when it fails, the extract of them stays."""

    name: ClassVar[str] = "gc_summarize"
    constraints: ClassVar[Constraints] = Constraints(needs_summarizer=True)

    def __init__(self) -> None:
        super().__init__()
        self._summaries = Summaries(None)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take options; `summarizer` is a callable or a name such as `openai:MODEL`."""
        super().initialize(config)
        self._summaries = Summaries(resolve_summarizer(self._options.summarizer))

    def shrink(self, bench: Workbench) -> None:
        """Summarise as many of the oldest turns as the target asks for; all of them if need be.

        Where no summary is shorter than what it stands for, turns go when the pressure is high.
        """
        enough = self._oldest(bench, share=1 - EXPECTED_SHARE)
        chosen = enough if self._suffices(bench, enough) else self._oldest(bench, share=0.0)
        replace_by_summary(bench, chosen, self._summaries, "summarized")
        rest = [i for i in self._oldest(bench, share=0.0) if bench.draft.get(i) is not None]
        if bench.excess > 0 and rest:
            replace_by_summary(bench, rest, self._summaries, "summarized")
        if bench.excess > 0 and bench.under_pressure:
            shorten_summaries(bench)
        if bench.excess > 0 and bench.under_pressure:
            drop_turns(bench, bench.turns, "truncated")
            shorten_summaries(bench)
        if bench.excess > 0 and bench.under_pressure:
            withdraw_summaries(bench)

    def _oldest(self, bench: Workbench, share: float) -> list[str]:
        """The free messages of the oldest turns whose removal, at this share of gain, meets the need."""
        chosen: list[str] = []
        gained = 0.0
        turns = 0
        for turn in bench.turns:
            if share and gained >= bench.excess and turns >= bench.excess_turns:
                break
            if bench.excess <= 0 and not bench.can_leave(turn):
                continue
            free = bench.free_ids(turn.places())
            gained += share * sum(bench.draft.size(message_id) for message_id in free)
            turns += bench.can_leave(turn)
            chosen.extend(free)
        return chosen

    def _suffices(self, bench: Workbench, chosen: list[str]) -> bool:
        size = sum(bench.draft.size(message_id) for message_id in chosen)
        return size * (1 - EXPECTED_SHARE) >= bench.excess


def create_plugin() -> SummarizeStrategy:
    """Return the plugin."""
    return SummarizeStrategy()
