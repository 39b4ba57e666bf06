"""The incremental step: a bounded bit of collecting after each arrival (S0 6.1).

Its three parts: the heap has already updated the ages of what the arrival touched; the step scores
what changed since the last one and a rotating sample of the rest; above the soft limit it plans to
stash a small batch of what no root holds. The work depends on the batch, not on the heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxgc.core.ancestry import ancestry
from ctxgc.core.bonds import bond_of
from ctxgc.core.heap import Heap
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningCandidate, PruningPlan, assemble, reason_for
from ctxgc.core.roots import GCState
from ctxgc.core.score import KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment
from ctxgc.core.sweep import choose, order_of_leaving

HAUNTED = 0.5
"""How strong the ghost of a segment's kin must be for a step to spare it."""


def step_plan(state: GCState, options: EngineOptions, scorer: KeepScore) -> PruningPlan | None:
    """Return the plan of one step; None below the soft limit or when nothing can go."""
    heap = state.heap
    looked_at = sample(heap, options.batch)
    soft = options.limit(options.soft_percent)
    working = heap.ledger.working.tokens
    if soft is None or working <= soft:
        return None
    # Whoever holds a part of a bond holds all of it, so the partners of the free are free.
    free = {
        partner: _candidate(state, heap.get(partner), scorer)
        for segment in looked_at
        if _is_free(state, segment, options)
        for partner in heap.bonds.group(segment)
    }
    small_batch = _up_to(order_of_leaving(free.values()), options.batch)
    chosen = choose(small_batch, free.get, working - soft)
    if not chosen:
        return None
    return assemble(
        chosen, target_tokens=None, scope="step", tokens_before=working, heap_version=heap.version
    )


def sample(heap: Heap, batch: int) -> list[ContextSegment]:
    """Return up to `batch` changed segments and up to `batch` of the others, in rotation."""
    changed, order = heap.index.changed, heap.order
    ids = dict.fromkeys(changed.popleft() for _ in range(min(batch, len(changed))))
    for _ in range(min(batch, len(order))):
        segment_id = order.popleft()
        ids[segment_id] = None
        if _is_working(heap, segment_id):
            order.append(segment_id)
    return [heap.get(segment_id) for segment_id in ids if _is_working(heap, segment_id)]


def _is_working(heap: Heap, segment_id: str) -> bool:
    segment = heap.peek(segment_id)
    return segment is not None and segment.tier == "working"


def _is_free(state: GCState, segment: ContextSegment, options: EngineOptions) -> bool:
    if state.ghost(segment) >= HAUNTED:
        return False
    bond = bond_of(segment)
    if bond is not None and len(state.heap.bonds.groups[bond]) > options.batch:
        return False
    return ancestry(state, segment, options.looks, options.strong).verdict == "free"


def _up_to(candidates: Iterable[PruningCandidate], batch: int) -> Iterator[PruningCandidate]:
    """Yield the first candidates whose bonds together are no larger than a batch."""
    leaving: set[str] = set()
    for candidate in candidates:
        if len(leaving.union(candidate.bond)) <= batch:
            leaving.update(candidate.bond)
            yield candidate


def _candidate(state: GCState, segment: ContextSegment, scorer: KeepScore) -> PruningCandidate:
    score = scorer(segment, ScoreContext(now=state.now, step=state.heap.step))
    age = (state.now - segment.created_at).total_seconds()
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=score,
        tokens=segment.tokens or 0,
        reason=reason_for(segment, age, reachable=False, score=score),
        type=segment.type,
        age=age,
        superseded=segment.superseded_by is not None,
        bond=state.heap.bonds.group(segment),
    )
