"""gc_budget: what leaves is decided by the policies in the budget (S2).

Enrichment goes in bulk, then ephemeral entries, then partial ones, oldest first; preservable ones
only under pressure; locked ones never. Messages leave in whole groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
from ctxgc.strategies.base import Constraints, GCRemovalItem
from ctxgc.strategies.builtin import BuiltinStrategy, CollectionRun
from ctxgc.strategies.truncate import drop_turns, hold_turn_limit

_STRICTNESS = (
    GCPolicy.EPHEMERAL, GCPolicy.CONDITIONAL, GCPolicy.PARTIAL, GCPolicy.PRESERVABLE, GCPolicy.LOCKED,
)  # fmt: skip
_PHASES: tuple[tuple[str, frozenset[GCPolicy]], ...] = (
    ("ephemeral", frozenset((GCPolicy.EPHEMERAL, GCPolicy.CONDITIONAL))),
    ("partial_turn", frozenset((GCPolicy.PARTIAL,))),
    ("preservable_under_pressure", frozenset((GCPolicy.PRESERVABLE,))),
)

_Group = tuple[int, ...]
_Rank = tuple[float, int, str]


class BudgetStrategy(BuiltinStrategy):
    """Policy-aware collection. Without a budget it truncates."""

    name: ClassVar[str] = "gc_budget"
    constraints: ClassVar[Constraints] = Constraints()

    def shrink(self, run: CollectionRun) -> None:
        """Run the phases in order, each only while the target is unmet."""
        if run.budget is None:
            drop_turns(run, run.turns, "truncated")
            hold_turn_limit(run)
            return
        self._clear_enrichment(run, run.budget)
        standings = [_standing(run, run.budget, group) for group in run.groups]
        for reason, policies in _PHASES:
            if reason == "preservable_under_pressure" and not run.under_pressure:
                continue
            self._remove(run, run.budget, policies, reason, standings)
        hold_turn_limit(run)
        self._tell(run)

    def _clear_enrichment(self, run: CollectionRun, budget: InstructionBudget) -> None:
        entry = budget.get_entry(InstructionSource.ENRICHMENT)
        tokens = entry.total_tokens() if entry is not None else 0
        if entry is None or not tokens:
            return
        ids = tuple(i for part in entry.walk() for i in part.message_ids)
        held = [i for i in ids if i in run.protected]
        if held:
            return
        run.draft.clear(
            GCRemovalItem(InstructionSource.ENRICHMENT, None, tokens, "enrichment_bulk_clear", ids)
        )

    def _remove(
        self,
        run: CollectionRun,
        budget: InstructionBudget,
        policies: frozenset[GCPolicy],
        reason: str,
        standings: list[_Standing],
    ) -> None:
        candidates: list[tuple[_Rank, _Group | GCRemovalItem]] = [
            (_rank(run, standing), standing.group)
            for standing in standings
            if standing.policy in policies
        ]
        candidates += [
            _released(key, entry, reason) for key, entry in _without_messages(budget, policies)
        ]
        for _, candidate in sorted(candidates, key=lambda each: each[0]):
            if run.excess <= 0:
                return
            if isinstance(candidate, GCRemovalItem):
                run.draft.release(candidate)
            elif len(run.free_ids(candidate)) == len(candidate):
                run.draft.remove_all(run.ids(candidate), reason)

    def _tell(self, run: CollectionRun) -> None:
        """Count what each phase removed, under the names that S2 gives."""
        reasons = [item.reason for item in run.draft.items()]
        run.details["enrichment_cleared"] = "enrichment_bulk_clear" in reasons
        run.details["ephemeral_removed"] = reasons.count("ephemeral")
        run.details["partial_removed"] = reasons.count("partial_turn")
        run.details["preservable_removed"] = reasons.count("preservable_under_pressure")


class _Standing(NamedTuple):
    """What the budget says of a group: its strictest policy, and when its oldest message came in.

    A message without entry is partial.
    """

    group: _Group
    policy: GCPolicy
    born: float


def _standing(run: CollectionRun, budget: InstructionBudget, group: _Group) -> _Standing:
    entries = [
        entry
        for message_id in run.ids(group)
        for source, key in budget.children_of_message(message_id)
        if (entry := budget.get_child(source, key)) is not None
    ]
    policies = {entry.gc_policy for entry in entries}
    if len(entries) < len(group):
        policies.add(GCPolicy.PARTIAL)
    strictest = max(policies, key=_STRICTNESS.index) if len(policies) > 1 else policies.pop()
    return _Standing(group, strictest, min([e.created_at or 0.0 for e in entries], default=0.0))


def _without_messages(
    budget: InstructionBudget, policies: frozenset[GCPolicy]
) -> Iterator[tuple[str, SourceEntry]]:
    """The children under these policies that no message makes up; enrichment went in bulk before."""
    for source in (InstructionSource.PLUGIN, InstructionSource.SYSTEM):
        entry = budget.get_entry(source)
        for key, child in entry.children.items() if entry is not None else ():
            if not child.message_ids and child.gc_policy in policies:
                yield key, child


def _released(key: str, entry: SourceEntry, reason: str) -> tuple[_Rank, GCRemovalItem]:
    tokens = entry.total_tokens()
    item = GCRemovalItem(entry.source, key, tokens, reason)
    return (entry.created_at or 0.0, -tokens, key), item


def _rank(run: CollectionRun, standing: _Standing) -> _Rank:
    """Oldest first; among equals the largest, since it frees most with least."""
    group = standing.group
    size = sum([run.draft.size(message_id) for message_id in run.ids(group)])
    return (standing.born, -size, f"{group[0]:09d}")
