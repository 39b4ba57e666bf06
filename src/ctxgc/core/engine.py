"""The GC engine: S1's interface over lists of segments, and the whole cycle over a heap.

plan = engine.plan(heap, now=now, free_tokens=5000)   # a decision, as data
collection = engine.apply(plan, heap)                 # its execution, all or nothing
engine.collect(heap, now=now)                         # both at once
engine.step(heap, now=now)                            # a bounded bit of it
engine.update(heap, segments, now=now)                # take segments in, then do what is due
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from itertools import islice

from ctxgc.core.analysis import Analysis, analyze
from ctxgc.core.apply import Collection, Summarize, apply_plan
from ctxgc.core.generations import Scope, checked_scope
from ctxgc.core.heap import Heap
from ctxgc.core.incremental import step_plan
from ctxgc.core.mark import reachable
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningCandidate, PruningPlan, assemble, checked_target
from ctxgc.core.planner import Planner
from ctxgc.core.roots import GCState, RootSet, compute_roots
from ctxgc.core.score import Explanation, KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment
from ctxgc.core.sweep import choose, order_of_leaving
from ctxgc.errors import InputError


class IGCEngine(ABC):
    """What S1 asks of an engine."""

    @abstractmethod
    def analyze_pruning_candidates(
        self, segments: list[ContextSegment], roots: AbstractSet[str]
    ) -> list[PruningCandidate]:
        """Return what may leave, first to go first."""

    @abstractmethod
    def compute_reachability(
        self, roots: AbstractSet[str], references: Mapping[str, Iterable[str]]
    ) -> set[str]:
        """Return all ids that the roots reach."""

    @abstractmethod
    def score_segment(self, segment: ContextSegment, now: datetime) -> float:
        """Return a segment's keep_score."""

    @abstractmethod
    def generate_pruning_plan(
        self, candidates: list[PruningCandidate], target_tokens: int
    ) -> PruningPlan:
        """Return a plan that frees the target tokens."""


class GCEngine(IGCEngine):
    """Mark and sweep over context segments. It holds options only; all state is in the heap."""

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self._scorer = KeepScore(self.options.profile, self.options.weights)

    # -- S1 ---------------------------------------------------------------------------------------

    def analyze_pruning_candidates(
        self,
        segments: list[ContextSegment],
        roots: AbstractSet[str],
        *,
        now: datetime | None = None,
        limit: int | None = None,
    ) -> list[PruningCandidate]:
        """Return every segment that is neither root nor pinned nor reachable, first to go first.

        The given roots are added to those that the segments themselves show (pins, recent messages,
        fresh decisions, instructions, ...). `now` defaults to the latest time that a segment carries;
        `limit` asks for the top candidates only.
        """
        heap = Heap()
        heap.add_all(segments)
        latest = max((s.last_touched_at for s in segments), default=None)
        if latest is None:
            return []
        held = dict.fromkeys(roots, "given root")
        state = GCState(heap=heap, now=now or latest, held=held, knobs=self.options.knobs)
        planner = Planner(analyze(state, self.options), self.options)
        return list(islice(planner.garbage(), limit))

    def compute_reachability(
        self, roots: AbstractSet[str], references: Mapping[str, Iterable[str]]
    ) -> set[str]:
        """Return all ids that the roots reach, the roots included; cycles and long chains are fine."""
        return reachable(roots, references)

    def score_segment(self, segment: ContextSegment, now: datetime) -> float:
        """Return the keep_score of a segment by the engine's profile: higher stays longer."""
        return self._scorer(segment, ScoreContext(now=now))

    def generate_pruning_plan(
        self, candidates: list[PruningCandidate], target_tokens: int
    ) -> PruningPlan:
        """Return the plan that frees `target_tokens` with the smallest harm, or says what is short."""
        target = checked_target(target_tokens)
        by_id = {candidate.segment_id: candidate for candidate in candidates}
        chosen = choose(order_of_leaving(candidates), by_id.get, target)
        return assemble(chosen, target_tokens=target)

    # -- the cycle --------------------------------------------------------------------------------

    def compute_roots(self, state: GCState) -> RootSet:
        """Return the roots of a heap, each with its reasons."""
        return compute_roots(state)

    def explain(self, segment: ContextSegment, now: datetime) -> Explanation:
        """Return the terms that make up a segment's score."""
        return self._scorer.explain(segment, ScoreContext(now=now))

    def state(self, heap: Heap, now: datetime) -> GCState:
        """Return a state without task, active file or further roots."""
        return GCState(heap=heap, now=now, knobs=self.options.knobs)

    def analyze(self, state: GCState, scope: Scope = "major") -> Analysis:
        """Return roots, marks and scores of a heap; nothing changes.

        What is garbage now stays so in the result, whatever becomes of the heap.
        """
        analysis = analyze(state, self.options, checked_scope(scope))
        _ = analysis.garbage
        return analysis

    def plan(
        self,
        heap: Heap | GCState,
        *,
        now: datetime | None = None,
        free_tokens: int | None = None,
        scope: Scope = "major",
    ) -> PruningPlan:
        """Return what a collection would do; the heap is not changed.

        Args:
            heap: the heap, or a state that names task, active file and further roots beside it.
            now: the time of the decision; required with a bare heap.
            free_tokens: how much to free. Without it: down to `target_percent` of the window when that
                is known, else all that is unreachable and nothing else.
            scope: `minor` looks at the young and the touched, `major` at everything.
        """
        state = self._state(heap, now)
        asked = None if free_tokens is None else checked_target(free_tokens, "free_tokens")
        need = self._need(state.heap) if asked is None else asked
        return Planner(self.analyze(state, scope), self.options).plan(need)

    def apply(
        self, plan: PruningPlan, heap: Heap, *, summarize: Summarize | None = None
    ) -> Collection:
        """Do what a plan says, all of it or nothing.

        Raises:
            StalePlanError: the heap has changed since the plan was made.
        """
        return apply_plan(plan, heap, self.options, summarize)

    def collect(
        self,
        heap: Heap | GCState,
        *,
        now: datetime | None = None,
        free_tokens: int | None = None,
        scope: Scope = "major",
        summarize: Summarize | None = None,
    ) -> Collection:
        """Plan and apply a full collection."""
        state = self._state(heap, now)
        plan = self.plan(state, free_tokens=free_tokens, scope=scope)
        return self.apply(plan, state.heap, summarize=summarize)

    def step(self, heap: Heap | GCState, *, now: datetime | None = None) -> Collection | None:
        """Do a bounded bit of collecting; return what was moved, None when nothing was.

        Looks at segments that changed since the last step and at a rotating sample of the others. Above
        the soft limit it stashes at most `batch` of those that no root holds.
        """
        state = self._state(heap, now)
        plan = step_plan(state, self.options, self._scorer)
        return None if plan is None else apply_plan(plan, state.heap, self.options, None)

    def is_due(self, heap: Heap) -> bool:
        """Tell whether the working tier has reached the hard limit, so that a full collection is due."""
        hard = self.options.limit(self.options.hard_percent)
        return hard is not None and heap.ledger.working.tokens >= hard

    def update(
        self,
        heap: Heap | GCState,
        segments: Iterable[ContextSegment],
        *,
        now: datetime | None = None,
    ) -> Collection | None:
        """Take in what is new, then do what is due: a full collection at the hard limit, else a step.

        The step runs on every update, or on each `step_every`th of them.
        """
        state = self._state(heap, now)
        state.heap.add_all(segments)
        state.heap.updates += 1
        if self.is_due(state.heap):
            return self.collect(state)
        return None if state.heap.updates % self.options.step_every else self.step(state)

    def _state(self, heap: Heap | GCState, now: datetime | None) -> GCState:
        if isinstance(heap, GCState):
            return heap
        if now is None:
            raise InputError(
                "a bare heap needs now=...", hint="give the time of the decision", field="now"
            )
        return self.state(heap, now)

    def _need(self, heap: Heap) -> int | None:
        target = self.options.limit(self.options.target_percent)
        return None if target is None else max(0, heap.ledger.working.tokens - target)
