"""S1 "Pruning Plan Structure", block 2: the plan; ours has the same fields in the same order."""

from dataclasses import dataclass, fields
from typing import List

import ctxgc
from ctxgc import ContextSegment, GCEngine, PruningCandidate

# -- the block


@dataclass
class PruningPlan:
    candidates: List[PruningCandidate]  # Sorted by score
    total_tokens_freed: int
    stash_segments: List[str]  # segment_ids to stash
    delete_segments: List[str]  # segment_ids to delete
    reason: str  # Explanation of plan


# -- ours

engine = GCEngine()
segments = [
    ContextSegment(segment_id=kind, text="text", type=kind, tokens=30)
    for kind in ("decision", "log", "note")
]
plan = engine.generate_pruning_plan(engine.analyze_pruning_candidates(segments, set()), 50)
theirs = PruningPlan(*(getattr(plan, field.name) for field in fields(PruningPlan)))
ours = ctxgc.PruningPlan(
    theirs.candidates,
    theirs.total_tokens_freed,
    theirs.stash_segments,
    theirs.delete_segments,
    theirs.reason,
)
assert [candidate.segment_id for candidate in ours.candidates] == ["log", "note"]
assert (ours.total_tokens_freed, ours.stash_segments, ours.delete_segments) == (60, ["log", "note"], [])
assert ours.reason
