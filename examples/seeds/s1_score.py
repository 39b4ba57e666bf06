"""S1 "Segment Scoring", block 1: the prune score; profile `s1` of ours is its mirror.

Fault of the seed: its text says "lower = more likely to prune", its formula and its steps the opposite.
"""

from datetime import UTC, datetime, timedelta
from math import isclose

from ctxgc import ContextSegment, EngineOptions, GCEngine
from ctxgc.core import prune_score

# -- the block


def score_segment(segment: ContextSegment, now: datetime) -> float:
    # Recency score (older = higher score = more likely to prune)
    age_hours = (now - segment.last_touched_at).total_seconds() / 3600
    recency_score = age_hours / 24.0  # Normalize to days
    
    # Type score (logs/notes = higher score, decisions = lower score)
    type_scores = {
        "log": 1.0,
        "note": 0.8,
        "code": 0.5,
        "message": 0.3,
        "decision": 0.1,
        "summary": 0.2
    }
    type_score = type_scores.get(segment.type, 0.5)
    
    # Reference count (fewer refs = higher score)
    refcount_score = 1.0 / (segment.refcount + 1)
    
    # Generation (old generation = higher score)
    generation_score = 1.0 if segment.generation == "old" else 0.3
    
    # Combine scores (weighted average)
    total_score = (
        0.4 * recency_score +
        0.3 * type_score +
        0.2 * refcount_score +
        0.1 * generation_score
    )
    
    return total_score


# -- ours

now = datetime(2026, 1, 2, tzinfo=UTC)
segments = [
    ContextSegment(
        text="text", type=kind, created_at=now - timedelta(hours=hours), refcount=refs, generation=age
    )
    for kind in ("log", "note", "code", "message", "decision", "summary")
    for hours, refs, age in [(0, 0, "young"), (1, 7, "old"), (200, 1, "old")]
]
engine = GCEngine(EngineOptions(profile="s1"))
for segment in segments:
    assert isclose(prune_score(segment, now), score_segment(segment, now))
    assert isclose(1.0 - engine.score_segment(segment, now), score_segment(segment, now))

# "Sort by score (highest first)"
offered = engine.analyze_pruning_candidates(segments, set(), now=now)
highest_first = sorted(segments, key=lambda s: -score_segment(s, now))
assert [c.segment_id for c in offered] == [s.segment_id for s in highest_first]
