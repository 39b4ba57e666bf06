"""BudgetView: what a budget answers, without what changes it."""

from __future__ import annotations

import time
from collections.abc import Callable

from ctxgc.budget.entry import SourceEntry, check_count
from ctxgc.budget.index import MessageIndex
from ctxgc.budget.source import GCPolicy, InstructionSource
from ctxgc.budget.totals import Totals


class BudgetView:
    """The questions that a budget answers; `InstructionBudget` adds what changes it."""

    def __init__(self, context_limit: int, *, clock: Callable[[], float] = time.time) -> None:
        self._set_limit(context_limit)
        self._clock = clock
        self._own: dict[InstructionSource, SourceEntry] = {}
        self._children: dict[InstructionSource, dict[str, SourceEntry]] = {}
        self._totals = Totals()
        self._index = MessageIndex()

    def get_entry(self, source: InstructionSource) -> SourceEntry | None:
        """Return the entry of a source with its children, or None if nothing was put there."""
        return self._own.get(InstructionSource(source))

    def get_child(self, source: InstructionSource, child_key: str | None) -> SourceEntry | None:
        """Return one child, or None."""
        # To make a member of a name takes longer than both look-ups together.
        children = self._children.get(source) or self._children.get(InstructionSource(source), {})
        return None if child_key is None else children.get(child_key)

    def children_of_message(self, message_id: str) -> tuple[tuple[InstructionSource, str], ...]:
        """Return the (source, child key) pairs that this message belongs to, in order of entry."""
        return self._index.places(message_id)

    def total_tokens(self) -> int:
        """Return the tokens of everything."""
        return self._totals.all_tokens()

    def tokens_by_source(self) -> dict[InstructionSource, int]:
        """Return the tokens of each source."""
        return self._totals.by_source()

    def tokens_by_policy(self) -> dict[GCPolicy, int]:
        """Return the tokens under each policy."""
        return self._totals.by_policy()

    def eligible_tokens(self) -> int:
        """Return the tokens that may leave without pressure: ephemeral, partial, conditional."""
        return self._totals.under(GCPolicy.EPHEMERAL, GCPolicy.PARTIAL, GCPolicy.CONDITIONAL)

    def preservable_tokens(self) -> int:
        """Return the tokens that may leave only under pressure."""
        return self._totals.under(GCPolicy.PRESERVABLE)

    def locked_tokens(self) -> int:
        """Return the tokens that never leave."""
        return self._totals.under(GCPolicy.LOCKED)

    def utilization(self) -> float:
        """Return the share of the context limit in use, in percent."""
        return 100.0 * self.total_tokens() / self.context_limit

    def _set_limit(self, context_limit: int) -> None:
        check_count("context_limit", context_limit, 1)
        self.context_limit = context_limit
