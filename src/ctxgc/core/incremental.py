"""The incremental step: a bounded bit of collecting after each arrival (S0 6.1).

Its three parts: the heap has already updated the ages of what the arrival touched; the step scores
what changed since the last one and a rotating sample of the rest; above the soft limit it plans to
stash a small batch of what no root holds. The work depends on the batch, not on the heap.
"""

from __future__ import annotations

from ctxgc.core.ancestry import ancestry
from ctxgc.core.heap import Heap
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningCandidate, PruningPlan, assemble, reason_for
from ctxgc.core.roots import GCState
from ctxgc.core.score import KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment
from ctxgc.core.sweep import choose, order_of_leaving


def step_plan(state: GCState, options: EngineOptions, scorer: KeepScore) -> PruningPlan | None:
    """Return the plan of one step; None below the soft limit or when nothing can go."""
    looked_at = sample(state.heap, options.batch)
    soft = options.limit(options.soft_percent)
    working = state.heap.ledger.working.tokens
    if soft is None or working <= soft:
        return None
    free = [
        s for s in looked_at if ancestry(state, s, options.looks, options.strong).verdict == "free"
    ]
    candidates = {s.segment_id: _candidate(state, s, scorer) for s in free}
    ordered = order_of_leaving(candidates.values())[: options.batch]
    chosen, _ = choose(ordered, candidates.get, working - soft)
    if not chosen:
        return None
    return assemble(
        chosen,
        target_tokens=None,
        scope="minor",
        tokens_before=working,
        heap_version=state.heap.version,
    )


def sample(heap: Heap, batch: int) -> list[ContextSegment]:
    """Return up to `batch` changed segments and up to `batch` of the others, in rotation."""
    ids: dict[str, None] = {}
    while heap.index.changed and len(ids) < batch:
        segment_id = next(iter(heap.index.changed))
        del heap.index.changed[segment_id]
        ids[segment_id] = None
    for _ in range(min(batch, len(heap.order))):
        heap.cursor = (heap.cursor + 1) % len(heap.order)
        ids.setdefault(heap.order[heap.cursor])
    found = (heap.peek(segment_id) for segment_id in ids)
    return [segment for segment in found if segment is not None and segment.tier == "working"]


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
