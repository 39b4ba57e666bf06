"""The GC engine: S1's interface over lists of segments, and the whole cycle over a heap.

plan = engine.plan(heap, now=now, free_tokens=5000)   # a decision, as data
collection = engine.apply(plan, heap)                 # its execution, all or nothing
engine.collect(heap, now=now)                         # both at once
engine.step(heap, now=now)                            # a bounded bit of it
engine.update(heap, segments, now=now)                # take segments in, then do what is due
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from itertools import count, pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ctxgc.collector.liveness import Analysis, analyze, unheld
from ctxgc.collector.sweep import Planner, Shrinker, choose, order_of_leaving, saving, stub_of
from ctxgc.core import (
    IN_PLACE,
    Bonds,
    ContextSegment,
    EngineOptions,
    Explanation,
    GCState,
    Heap,
    KeepScore,
    PruningCandidate,
    PruningPlan,
    RootSet,
    Scope,
    ScoreContext,
    SegmentType,
    age,
    ancestry,
    assemble,
    bond_of,
    candidate_for,
    checked_scope,
    checked_target,
    compute_roots,
    each_once,
    explicit_references,
    ids,
    in_scope,
    is_message,
    is_outlived,
    message_key,
    reachable,
    rough_tokens,
)
from ctxgc.errors import InputError, StalePlanError

# -- Apply: execute a plan on a heap, all of it or nothing


Summarize = Callable[[ContextSegment], str | None]


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """One applied plan: what it did to the heap.

    `replaced` maps a segment that was evacuated or compressed to the one that stands in its place.
    """

    plan: PruningPlan
    tokens_before: int
    tokens_after: int
    stashed: list[str]
    deleted: list[str]
    replaced: dict[str, str]
    tenured: list[str]

    @property
    def tokens_freed(self) -> int:
        """How much smaller the working tier has become."""
        return self.tokens_before - self.tokens_after


def apply_plan(
    plan: PruningPlan, heap: Heap, options: EngineOptions, summarize: Summarize | None
) -> Collection:
    """Execute a plan and age the survivors; an incremental step ages nobody.

    Raises:
        StalePlanError: the heap has changed since the plan was made, or the plan was made without one.
    """
    check_plan(plan, heap)
    before = heap.ledger.working.tokens
    # All that can fail comes first, so that a failure changes nothing.
    stand_ins = _stand_ins(plan, heap, options, summarize)
    for original, stand_in in stand_ins.items():
        heap.replace(original, stand_in)
    for segment_id in plan.stash_segments:
        heap.stash(segment_id)
    for segment_id in plan.delete_segments:
        heap.remove(segment_id)
    new = {stand_in.segment_id for stand_in in stand_ins.values()}
    return Collection(
        plan=plan,
        tokens_before=before,
        tokens_after=heap.ledger.working.tokens,
        stashed=[*plan.stash_segments, *stand_ins],
        deleted=plan.delete_segments,
        replaced={original: s.segment_id for original, s in stand_ins.items()},
        tenured=_age(plan, heap, new, options.promote_after),
    )


def check_plan(plan: PruningPlan, heap: Heap) -> None:
    """Check that a plan can be applied: what it moves is there, and nothing changed since it was made.

    Raises:
        StalePlanError: the heap has changed since, or the plan was made without one.
    """
    if plan.heap_version is None:
        raise StalePlanError(
            "the plan was made from a list of candidates and belongs to no heap",
            hint="make it with plan(heap, ...)",
        )
    at_hand = (heap.peek(candidate.segment_id) for candidate in plan.candidates)
    if plan.heap_version != heap.version or any(s is None or s.tier != "working" for s in at_hand):
        raise StalePlanError(
            f"the plan was made at version {plan.heap_version}, the heap is at {heap.version}",
            hint="plan again and apply the new plan",
        )


def _age(plan: PruningPlan, heap: Heap, new: set[str], promote_after: int) -> list[str]:
    if plan.scope == "step":
        return []
    survivors = [s for s in in_scope(heap, plan.scope) if s.segment_id not in new]
    return age(heap, survivors, promote_after)


def _stand_ins(
    plan: PruningPlan, heap: Heap, options: EngineOptions, summarize: Summarize | None
) -> dict[str, ContextSegment]:
    """Return what stands in the place of each segment that is evacuated or compressed."""
    made: dict[str, ContextSegment] = {}
    for segment_id in plan.evacuate_segments:
        made[segment_id] = _stand_in(heap, segment_id, plan.stubs[segment_id], None)
    for segment_id in plan.compress_segments:
        summary = summarize(heap.get(segment_id)) if summarize is not None else None
        room = int((heap.get(segment_id).tokens or 0) * options.compress_ratio)
        if summary and heap.count(summary) <= room:
            made[segment_id] = _stand_in(heap, segment_id, summary, "summary")
        else:
            made[segment_id] = _stand_in(heap, segment_id, plan.stubs[segment_id], None)
    return made


def _stand_in(heap: Heap, segment_id: str, text: str, kind: SegmentType | None) -> ContextSegment:
    """A smaller segment with the age, place, bond and keys of the one that leaves."""
    segment = heap.get(segment_id)
    names = (f"{segment_id}.stub{n}" for n in count(heap.version))
    return ContextSegment(
        segment_id=next(name for name in names if name not in heap),
        text=text,
        type=kind or segment.type,
        tokens=heap.count(text),
        derived_from=segment_id,
        message_id=message_key(segment) if is_message(segment) else None,
        **{field: getattr(segment, field) for field in _INHERITED},
    )


_INHERITED = (
    "role", "created_at", "last_touched_at", "created_step", "last_touched_step", "generation",
    "gc_survival_count", "touches", "references", "reply_to", "file_path", "line_range", "tags",
    "topic_id", "task_id", "project_id", "policy", "source", "part", "call_id", "bond_id", "trust",
    "name",
)  # fmt: skip


# -- The incremental step: a bounded bit of collecting after each arrival (S0 6.1)


HAUNTED = 0.5
"""How strong the ghost of a segment's kin must be for a step to spare it."""


def step_plan(state: GCState, options: EngineOptions, scorer: KeepScore) -> PruningPlan | None:
    """Return the plan of one step; None below the soft limit or when nothing can go."""
    heap = state.heap
    looked_at = sample(heap, options.batch)
    soft = options.limit(options.soft_limit_percent)
    working = heap.ledger.working.tokens + state.alongside
    if soft is None or working <= soft:
        return None
    shrinker = Shrinker(heap, options)
    free = {
        candidate.segment_id: candidate
        for segment in looked_at
        if _is_free(state, segment, options)
        for candidate in _leaving(state, segment, options, scorer, shrinker)
    }
    small_batch = _up_to(order_of_leaving(free.values()), options.batch)
    chosen = choose(small_batch, free.get, working - soft)
    if not chosen:
        return None
    return assemble(
        chosen,
        target_tokens=None,
        scope="step",
        tokens_before=working,
        heap_version=heap.version,
        stubs={c.segment_id: shrinker.stubs[c.segment_id] for c in chosen if c.action in IN_PLACE},
    )


def sample(heap: Heap, batch: int) -> list[ContextSegment]:
    """Return up to `batch` changed segments and up to `batch` of the others, in rotation."""
    changed, order = heap.index.changed, heap.order
    turn = dict.fromkeys(changed.popleft() for _ in range(min(batch, len(changed))))
    for _ in range(min(batch, len(order))):
        segment_id = order.popleft()
        turn[segment_id] = None
        if heap.is_working(segment_id):
            order.append(segment_id)
    return [heap.get(segment_id) for segment_id in turn if heap.is_working(segment_id)]


def _is_free(state: GCState, segment: ContextSegment, options: EngineOptions) -> bool:
    if state.recall_weight(segment) >= HAUNTED:
        return False
    bond = bond_of(segment)
    if bond is not None and len(state.heap.bonds.groups[bond]) > options.batch:
        return False
    return _verdict(state, segment, options) == "free"


def _up_to(candidates: Iterable[PruningCandidate], batch: int) -> Iterator[PruningCandidate]:
    """Yield the first candidates whose bonds together are no larger than a batch."""
    leaving: set[str] = set()
    for candidate in candidates:
        if len(leaving.union(candidate.bond)) <= batch:
            leaving.update(candidate.bond)
            yield candidate


def _leaving(
    state: GCState,
    segment: ContextSegment,
    options: EngineOptions,
    scorer: KeepScore,
    shrinker: Shrinker,
) -> list[PruningCandidate]:
    """Return the candidates for a free segment and its bond, or for its stub where the bond is held."""
    bond = state.heap.bonds.group(segment)
    # Whoever holds a part of a bond holds all of it but the outlived, so the partners of others are free.
    partners = [state.heap.get(partner) for partner in bond if is_outlived(segment)]
    if all(_verdict(state, partner, options) == "free" for partner in partners):
        return [_candidate(state, state.heap.get(each), options, scorer) for each in bond]
    candidate = _candidate(state, segment, options, scorer)
    found = shrinker.outlive(segment, candidate.evidence.brief)
    return [] if found is None else [replace(candidate, action=found.action, freed=found.freed)]


def _verdict(state: GCState, segment: ContextSegment, options: EngineOptions) -> str:
    return ancestry(state, segment, options.looks, options.strong).verdict


def _candidate(
    state: GCState, segment: ContextSegment, options: EngineOptions, scorer: KeepScore
) -> PruningCandidate:
    is_stale = segment.superseded_by is not None
    held = is_stale and _verdict(state, replace(segment, superseded_by=None), options) == "held"
    return candidate_for(
        segment,
        state.now,
        scorer(segment, ScoreContext(now=state.now, step=state.heap.step)),
        unheld(segment, state.heap.peek, replaced=held),
        superseded=is_stale,
        bond=state.heap.bonds.group(segment),
    )


# -- Lists of segments, as S1 has them


def _checked_ids(roots: Iterable[str]) -> Iterable[str]:
    if isinstance(roots, str):  # a set of its letters would protect nothing
        raise InputError(
            "roots must be a set of ids, got str", hint=f"{{{roots!r}}}", field="roots"
        )
    return roots


def _bonds(segments: Iterable[ContextSegment]) -> dict[str, tuple[str, ...]]:
    """Return which segments live and die together, by the name of their bond."""
    bonds = Bonds()
    for segment in segments:
        bonds.add(segment)
    return {name: tuple(ids(group)) for name, group in bonds.groups.items()}


def _references(
    listed: Mapping[str, ContextSegment], bonds: Mapping[str, tuple[str, ...]]
) -> dict[str, set[str]]:
    """Return what each segment names, and in a ring all that live and die together.

    What is outlived leads into the ring, but is not part of it.
    """
    references = {name: set(explicit_references(segment)) for name, segment in listed.items()}
    for bond in bonds.values():
        ring = [member for member in bond if not is_outlived(listed[member])]
        for member in bond if ring else ():
            references[member].add(ring[0])
        for member, following in pairwise(ring):
            references[member].add(following)
    return references


class _List(NamedTuple):
    """A list of segments as it was looked at: which are bonded, and which the roots reach."""

    segments: Mapping[str, ContextSegment]
    bonds: Mapping[str, tuple[str, ...]]
    reached: set[str]
    now: datetime
    count: Callable[[str], int]


def _counted(segment: ContextSegment, count: Callable[[str], int]) -> ContextSegment:
    return segment if segment.tokens is not None else replace(segment, tokens=count(segment.text))


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
        count: Callable[[str], int] = rough_tokens,
    ) -> list[PruningCandidate]:
        """Return the segments that neither the roots nor a pin reach, lowest score first.

        The roots are those given, the refcounts those that the segments carry, and the scores those of
        `score_segment`; nothing else is looked for. Pass `compute_roots(state)` for the rules of the
        engine, and `plan(heap)` follows shared files, tags and topics as well. A reference or root that
        is not in the list leads nowhere. A bond is reached as a whole, but for superseded results: these can
        leave a stub while their call stays.

        Args:
            segments: what to look at; those that are stashed already are no candidates.
            roots: the ids of what must stay.
            now: the time of the decision; by default the latest that a segment carries.
            limit: how many of the top candidates to return; all unless told otherwise.
            count: counts the tokens of a segment that comes without `tokens`.

        Raises:
            DuplicateSegmentError: two segments of the list have one id and different texts.
        """
        listed = each_once(segments)
        if not listed:
            return []
        time = now or max(segment.last_touched_at for segment in listed.values())
        bonds = _bonds(listed.values())
        kept = {*_checked_ids(roots), *(s.segment_id for s in listed.values() if s.pinned)}
        reached = self.compute_reachability(kept, _references(listed, bonds))
        free = [s for s in listed.values() if s.segment_id not in reached and s.tier == "working"]
        seen = _List(segments=listed, bonds=bonds, reached=reached, now=time, count=count)
        found = [c for s in free if (c := self._offer(_counted(s, count), seen)) is not None]
        top = len(found) if limit is None else checked_target(limit, "limit")
        return sorted(found, key=attrgetter("score"))[:top]

    def compute_reachability(
        self, roots: AbstractSet[str], references: Mapping[str, Iterable[str]]
    ) -> set[str]:
        """Return all ids that the roots reach, the roots included; cycles and long chains are fine."""
        return reachable(_checked_ids(roots), references)

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

    def compute_roots(self, state: GCState | object) -> RootSet:
        """Return the roots of a heap or of a host's own sets of ids, each with its reasons."""
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
        plan = self.plan_step(state)
        return None if plan is None else apply_plan(plan, state.heap, self.options, None)

    def plan_step(self, state: GCState) -> PruningPlan | None:
        """Return the plan of one step; None below the soft limit or when nothing can go."""
        return step_plan(state, self.options, self._scorer)

    def is_due(self, heap: Heap) -> bool:
        """Tell whether the working tier has reached the hard limit, so that a full collection is due."""
        hard = self.options.limit(self.options.hard_limit_percent)
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

    def _offer(self, segment: ContextSegment, seen: _List) -> PruningCandidate | None:
        """Return the candidate for a segment of a list, as the segment itself shows it.

        A superseded result whose bond stays can only leave a stub; None if that frees too little.
        """
        bond = seen.bonds.get(bond_of(segment) or "", (segment.segment_id,))
        stays = any(member in seen.reached for member in bond)
        evidence = unheld(segment, seen.segments.get, replaced=stays)
        freed = tokens = segment.tokens or 0
        if stays:
            freed = saving(tokens, seen.count(stub_of(segment, evidence.brief, self.options)))
        if stays and not freed:
            return None
        policies = self.options.delete_policies
        may_delete = bool(policies) and all(seen.segments[m].policy in policies for m in bond)
        return candidate_for(
            segment,
            seen.now,
            self.score_segment(segment, seen.now),
            evidence,
            action="evacuate" if stays else "delete" if may_delete else "stash",
            superseded=segment.superseded_by is not None,
            freed=freed,
            bond=bond,
        )

    def _need(self, heap: Heap) -> int | None:
        target = self.options.limit(self.options.target_percent)
        return None if target is None else max(0, heap.ledger.working.tokens - target)
