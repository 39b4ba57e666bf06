"""gc_budget: what leaves is decided by the policies in the budget (S2).

Enrichment goes in bulk, then ephemeral entries, then partial ones, oldest first; preservable ones
only under pressure; locked ones never. Messages leave in whole groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
from ctxgc.collector import CollectionRun, GCRemovalItem, turn_number
from ctxgc.core import Evidence
from ctxgc.strategies.builtin import BuiltinStrategy
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

    def shrink(self, run: CollectionRun) -> None:
        """Run the phases in order, each only while the target is unmet."""
        if run.budget is None:
            drop_turns(run, run.turns, "truncated")
            hold_turn_limit(run)
            return
        self._clear_enrichment(run, run.budget)
        standings = [_standing(run, group) for group in run.groups]
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
            _released(key, entry, reason)
            for key, entry in _without_messages(run, budget)
            if entry.gc_policy in policies
        ]
        for _, candidate in sorted(candidates, key=lambda each: each[0]):
            if run.excess <= 0:
                return
            if isinstance(candidate, GCRemovalItem):
                run.draft.clear(candidate)
            elif len(run.free_ids(candidate)) == len(candidate):
                run.draft.remove_all(run.ids(candidate), Evidence(kind="policy", how=reason))

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


def _standing(run: CollectionRun, group: _Group) -> _Standing:
    entries = [entry for message_id in run.ids(group) for entry in run.booking.entries(message_id)]
    policies = {entry.gc_policy for entry in entries}
    if len(entries) < len(group):
        policies.add(GCPolicy.PARTIAL)
    strictest = max(policies, key=_STRICTNESS.index) if len(policies) > 1 else policies.pop()
    return _Standing(group, strictest, min([e.created_at or 0.0 for e in entries], default=0.0))


def _without_messages(
    run: CollectionRun, budget: InstructionBudget
) -> Iterator[tuple[str, SourceEntry]]:
    """The children that may leave and that no message makes up; enrichment went in bulk before.

    Turns are among them only where there is no history: else they would be counted as gone and still be sent.
    """
    turns = () if run.history else (InstructionSource.CONVERSATION,)
    for source in (InstructionSource.PLUGIN, InstructionSource.SYSTEM, *turns):
        entry = budget.get_entry(source)
        children = {} if entry is None else entry.children
        kept = _kept_turns(run, children) if source in turns else ()
        for key, child in children.items():
            if key not in kept and (turns or not child.message_ids):
                yield key, child


def _kept_turns(run: CollectionRun, children: Mapping[str, SourceEntry]) -> set[str]:
    """The recent and the pinned turns among the children of a budget."""
    numbers = {key: number for key in children if (number := turn_number(key)) is not None}
    ordered = sorted(numbers, key=numbers.__getitem__)
    pinned = {key for key in ordered if numbers[key] in run.config.pinned_turn_indices}
    return pinned.union(ordered[max(0, len(ordered) - run.preserve) :])


def _released(key: str, entry: SourceEntry, reason: str) -> tuple[_Rank, GCRemovalItem]:
    tokens = entry.total_tokens()
    item = GCRemovalItem(
        entry.source, key, tokens, reason, evidence=Evidence(kind="policy", how=reason)
    )
    return (entry.created_at or 0.0, -tokens, key), item


def _rank(run: CollectionRun, standing: _Standing) -> _Rank:
    """Oldest first; among equals the largest, since it frees most with least."""
    group = standing.group
    size = sum([run.draft.size(message_id) for message_id in run.ids(group)])
    return (standing.born, -size, f"{group[0]:09d}")
