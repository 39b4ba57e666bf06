"""The planner: from an analysis to a plan."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from ctxgc.core.analysis import Analysis
from ctxgc.core.bonds import bond_of
from ctxgc.core.groups import members
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, assemble, reason_for
from ctxgc.core.segment import ContextSegment
from ctxgc.core.shrink import Shrinker
from ctxgc.core.sweep import choose


class Planner:
    """Turns segments into candidates, lazily: a plan that needs ten looks at ten."""

    def __init__(self, analysis: Analysis, options: EngineOptions) -> None:
        self._analysis = analysis
        self._options = options
        self._heap = analysis.state.heap
        self._now = analysis.state.now
        self._groups = self._heap.bonds.groups
        self._shrinker = Shrinker(self._heap, options)
        self._bonds: dict[str, tuple[str, ...]] = {}

    def plan(self, need: int | None) -> PruningPlan:
        """Return the plan that frees `need` tokens, or all garbage when no need is given."""
        chosen = self._choose(need)
        taken = {c.segment_id: c.action for c in chosen if c.reachable}
        stubs = self._shrinker.stubs
        return assemble(
            chosen,
            target_tokens=need,
            proposals=self._proposals(taken),
            scope=self._analysis.scope,
            tokens_before=self._heap.ledger.working.tokens,
            heap_version=self._heap.version,
            stubs={i: stubs[i] for i in sorted(taken) if taken[i] in ("evacuate", "compress")},
        )

    def _choose(self, need: int | None) -> list[PruningCandidate]:
        if need is None:
            return list(self.garbage())
        return choose(self._live(), self._find, need, whole=self._garbage_by_bond())

    def _live(self) -> Iterator[PruningCandidate]:
        """Yield the reachable, first to go first; of a bond only what leaves before the rest."""
        # Nothing reachable is looked at before all garbage has been offered.
        self._shrinker.leaving.update(segment.segment_id for segment in self._analysis.garbage)
        done: set[str] = set()
        for segment in self._analysis.live:
            if segment.segment_id not in done:
                done.update(self._bond(segment))
                yield from self._kindest(segment)

    def garbage(self) -> Iterator[PruningCandidate]:
        """Yield what the roots do not reach, first to go first."""
        partners: dict[str, PruningCandidate] = {}
        scored = zip(self._analysis.garbage, self._analysis.garbage_scores, strict=True)
        for segment, score in scored:
            if segment.segment_id not in partners:
                made = self._make_garbage(segment, score)
                partners.update((member.segment_id, member) for member in made)
            yield partners.pop(segment.segment_id)

    def _garbage_by_bond(self) -> Iterator[list[PruningCandidate]]:
        """Yield what the roots do not reach, first to go first, each with its whole bond."""
        bonds: set[str] = set()
        scored = zip(self._analysis.garbage, self._analysis.garbage_scores, strict=True)
        for segment, score in scored:
            bond = bond_of(segment)
            if bond is None or bond not in bonds:
                if bond is not None:
                    bonds.add(bond)
                yield self._make_garbage(segment, score)

    def _make_garbage(self, segment: ContextSegment, score: float) -> list[PruningCandidate]:
        """Make a candidate with all of its bond: who lives and dies with garbage is garbage."""
        whole, stale = self._members(segment), segment.superseded_by is not None
        bond = tuple([member.segment_id for member in whole])
        action: Action = "delete" if self._may_delete(whole) else "stash"
        made = []
        for member in whole:
            # The scores of a bond are levelled, those of the superseded apart from the others.
            levelled = (member.superseded_by is not None) is stale
            worth = score if levelled else self._analysis.score(member.segment_id)
            made.append(self._make(member, action, member.tokens or 0, worth, bond, live=False))
        return made

    def _find(self, segment_id: str) -> PruningCandidate | None:
        if not self._analysis.may_leave(segment_id):
            return None
        segment = self._heap.get(segment_id)
        if self._analysis.is_live(segment):
            return self._stash(segment)
        made = self._make_garbage(segment, self._analysis.score(segment_id))
        return next(candidate for candidate in made if candidate.segment_id == segment_id)

    def _may_delete(self, bond: list[ContextSegment]) -> bool:
        policies = self._options.delete_policies
        return bool(policies) and all(member.policy in policies for member in bond)

    def _kindest(self, segment: ContextSegment) -> list[PruningCandidate]:
        """Return what can be made smaller in a live segment's bond; else the segment, to be stashed."""
        movable = [m for m in self._bond(segment) if self._analysis.may_leave(m)]
        smaller = []
        for member in map(self._heap.get, movable):
            found = self._shrinker.shrink(member)
            if found is not None:
                self._shrinker.leaving.add(member.segment_id)
                smaller.append(self._make_live(member, found.action, found.freed))
        return smaller or [self._stash(segment)]

    def _stash(self, segment: ContextSegment) -> PruningCandidate:
        self._shrinker.leaving.add(segment.segment_id)
        return self._make_live(segment, "stash", segment.tokens or 0)

    def _make_live(self, segment: ContextSegment, action: Action, freed: int) -> PruningCandidate:
        score = self._analysis.score(segment.segment_id)
        return self._make(segment, action, freed, score, self._bond(segment), live=True)

    def _make(
        self,
        segment: ContextSegment,
        action: Action,
        freed: int,
        score: float,
        bond: tuple[str, ...],
        *,
        live: bool,
    ) -> PruningCandidate:
        age = (self._now - segment.created_at).total_seconds()
        return PruningCandidate(
            segment_id=segment.segment_id,
            score=score,
            tokens=segment.tokens or 0,
            reason=reason_for(segment, age, reachable=live, score=score),
            type=segment.type,
            age=age,
            action=action,
            reachable=live,
            superseded=segment.superseded_by is not None,
            freed=freed,
            bond=bond,
        )

    def _bond(self, segment: ContextSegment) -> tuple[str, ...]:
        bond = bond_of(segment)
        if bond is None:
            return (segment.segment_id,)
        known = self._bonds.get(bond)
        if known is None:
            known = tuple([member.segment_id for member in self._members(segment)])
            self._bonds[bond] = known
        return known

    def _members(self, segment: ContextSegment) -> list[ContextSegment]:
        bond = bond_of(segment)
        if bond is None:
            return [segment]
        return sorted(members(self._groups[bond]), key=attrgetter("position"))

    def _proposals(self, taken: dict[str, Action]) -> list[PruningCandidate]:
        """Reachable, long and cold: cold but important, so worth a summary."""
        cold = self._analysis.cold(self._shrinker.may_compress, self._options.verbose_tokens)
        return [self._proposal(segment) for segment in cold if segment.segment_id not in taken]

    def _proposal(self, segment: ContextSegment) -> PruningCandidate:
        tokens = segment.tokens or 0
        idle = self._heap.step - segment.last_touched_step
        return PruningCandidate(
            segment_id=segment.segment_id,
            score=self._analysis.score(segment.segment_id),
            tokens=tokens,
            reason=f"cold but important: {tokens} tokens, reachable, untouched for {idle} steps",
            type=segment.type,
            age=(self._now - segment.created_at).total_seconds(),
            action="compress",
            reachable=True,
            freed=tokens - int(tokens * self._options.compress_ratio),
            bond=self._bond(segment),
        )
