"""Sums by source and by policy, kept while entries come and go."""

from __future__ import annotations

from collections import Counter

from ctxgc.budget.entry import SourceEntry
from ctxgc.budget.source import GCPolicy, InstructionSource


class Totals:
    """The running sums of a budget."""

    def __init__(self) -> None:
        self._sources: Counter[InstructionSource] = Counter()
        self._policies: Counter[GCPolicy] = Counter()

    def replace(self, before: SourceEntry | None, after: SourceEntry | None) -> None:
        """Take an entry and everything under it out, and put another in."""
        for entry, sign in ((before, -1), (after, 1)):
            if entry is not None:
                for part in entry.walk() if entry.children else (entry,):
                    self._sources[part.source] += sign * part.tokens
                    self._policies[part.gc_policy] += sign * part.tokens

    def all_tokens(self) -> int:
        """Return the sum of everything."""
        return self._sources.total()

    def of(self, source: InstructionSource) -> int:
        """Return the sum of one source."""
        return self._sources[source]

    def under(self, *policies: GCPolicy) -> int:
        """Return the sum under these policies."""
        return sum(self._policies[policy] for policy in policies)

    def by_source(self) -> dict[InstructionSource, int]:
        """Return the sum of each source."""
        return {source: self._sources[source] for source in InstructionSource}

    def by_policy(self) -> dict[GCPolicy, int]:
        """Return the sum under each policy."""
        return {policy: self._policies[policy] for policy in GCPolicy}
