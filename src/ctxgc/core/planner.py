"""The planner: from an analysis to a plan."""

from __future__ import annotations

from collections.abc import Iterator

from ctxgc.core.analysis import Analysis
from ctxgc.core.evacuate import evacuate
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, assemble, reason_for
from ctxgc.core.segment import ContextSegment
from ctxgc.core.sweep import choose, whole_bond
from ctxgc.core.tombstone import tombstone

MIN_SAVING = 0.30


class Planner:
    """Turns segments into candidates, lazily: a plan that needs ten looks at ten."""

    def __init__(self, analysis: Analysis, options: EngineOptions) -> None:
        self._analysis = analysis
        self._options = options
        self._heap = analysis.state.heap
        self._reached = analysis.marks.came_from
        self._leaving: set[str] = set()
        self._stubs: dict[str, str] = {}
        self._bonded_garbage: dict[str, PruningCandidate] = {}

    def candidates(self) -> Iterator[PruningCandidate]:
        """Yield everything that may leave, first to go first."""
        return (self._candidate(segment) for segment in self._analysis.order)

    def plan(self, need: int | None) -> PruningPlan:
        """Return the plan that frees `need` tokens, or all garbage when no need is given."""
        if need is None:
            chosen = [c for c in self.garbage() if whole_bond(c, self._find_garbage)]
        else:
            chosen, _ = choose(self.candidates(), self._find, need)
        taken = {candidate.segment_id for candidate in chosen if candidate.action == "evacuate"}
        return assemble(
            chosen,
            target_tokens=need,
            proposals=self._proposals({candidate.segment_id for candidate in chosen}),
            scope=self._analysis.scope,
            tokens_before=self._heap.ledger.working.tokens,
            heap_version=self._heap.version,
            stubs={segment_id: self._stubs[segment_id] for segment_id in sorted(taken)},
        )

    def garbage(self) -> Iterator[PruningCandidate]:
        """Yield what the roots do not reach, first to go first."""
        for candidate in self.candidates():
            if candidate.reachable:
                return
            yield candidate

    def _find(self, segment_id: str) -> PruningCandidate | None:
        if segment_id not in self._analysis.scores:
            return None
        # A partner is asked for because its bond leaves whole, so it cannot stay behind as a stub.
        return self._candidate(self._heap.get(segment_id), whole=True)

    def _find_garbage(self, segment_id: str) -> PruningCandidate | None:
        found = self._find(segment_id)
        return None if found is None or found.reachable else found

    def _candidate(self, segment: ContextSegment, *, whole: bool = False) -> PruningCandidate:
        # Garbage in a bond is asked for by itself and again by each partner: it is made once.
        known = self._bonded_garbage.get(segment.segment_id)
        if known is not None:
            return known
        self._leaving.add(segment.segment_id)
        live = self._is_live(segment)
        if live and not whole:
            return self._make(segment, *self._kindest(segment), live=True)
        action: Action = "stash" if live else self._gone(segment)
        made = self._make(segment, action, segment.tokens or 0, live=live)
        if not live and len(made.bond) > 1:
            self._bonded_garbage[segment.segment_id] = made
        return made

    def _make(
        self, segment: ContextSegment, action: Action, freed: int, *, live: bool
    ) -> PruningCandidate:
        age = (self._analysis.state.now - segment.created_at).total_seconds()
        score = self._analysis.scores[segment.segment_id]
        moves = action in ("stash", "delete")
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
            bond=self._heap.bonds.group(segment) if moves else (segment.segment_id,),
        )

    def _is_live(self, segment: ContextSegment) -> bool:
        if self._analysis.scope == "minor" and segment.generation == "old":
            return True
        return segment.segment_id in self._reached

    def _gone(self, segment: ContextSegment) -> Action:
        return "delete" if segment.policy in self._options.delete_policies else "stash"

    def _kindest(self, segment: ContextSegment) -> tuple[Action, int]:
        """Evacuate, else compress, else stash a reachable segment; with what that frees."""
        tokens, options = segment.tokens or 0, self._options
        if segment.superseded_by is not None:
            return "stash", tokens
        if tokens >= options.evacuate_min_tokens and segment.type in ("log", "code"):
            stub = self._stub(segment)
            freed = tokens - self._heap.count(stub)
            if freed >= MIN_SAVING * tokens:
                self._stubs[segment.segment_id] = stub
                return "evacuate", freed
        if options.can_compress and self._is_cold(segment):
            return "compress", tokens - int(tokens * options.compress_ratio)
        return "stash", tokens

    def _stub(self, segment: ContextSegment) -> str:
        held_elsewhere = self._leaving | {segment.segment_id}
        holders = self._heap.mentions.holders
        found = evacuate(
            segment.text,
            lambda name: bool(holders(name)) and held_elsewhere.issuperset(holders(name)),
        )
        why = "reachable, but cold; its live lines stay"
        return tombstone(
            segment, why, handle=segment.segment_id, names=found.names, kept=found.kept
        )

    def _is_cold(self, segment: ContextSegment) -> bool:
        idle = self._heap.step - segment.last_touched_step
        return (
            segment.tokens or 0
        ) >= self._options.verbose_tokens and idle >= self._options.cold_steps

    def _proposals(self, chosen: set[str]) -> list[PruningCandidate]:
        """Reachable, long and cold: cold but important, so worth a summary."""
        verbose = self._options.verbose_tokens
        return [
            self._proposal(segment)
            for segment in self._analysis.order
            if (segment.tokens or 0) >= verbose and self._is_worth_a_summary(segment, chosen)
        ]

    def _is_worth_a_summary(self, segment: ContextSegment, chosen: set[str]) -> bool:
        if segment.segment_id in chosen or segment.superseded_by is not None:
            return False
        return self._is_cold(segment) and self._is_live(segment)

    def _proposal(self, segment: ContextSegment) -> PruningCandidate:
        tokens = segment.tokens or 0
        now = self._analysis.state.now
        return PruningCandidate(
            segment_id=segment.segment_id,
            score=self._analysis.scores[segment.segment_id],
            tokens=tokens,
            reason=f"cold but important: {tokens} tokens, reachable, "
            f"untouched for {self._heap.step - segment.last_touched_step} steps",
            type=segment.type,
            age=(now - segment.created_at).total_seconds(),
            action="compress",
            reachable=True,
            freed=tokens - int(tokens * self._options.compress_ratio),
            bond=(segment.segment_id,),
        )
