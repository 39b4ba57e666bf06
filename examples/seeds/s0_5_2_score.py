"""S0 5.2, block 5: the conceptual score; profile `s0` of ours gives the same numbers."""

from datetime import UTC, datetime, timedelta
from math import isclose

from ctxgc import ContextSegment, EngineOptions, GCEngine


def seconds_since(then: datetime, now: datetime) -> float:
    return (now - then).total_seconds()


# -- the block


def compute_score(seg: ContextSegment, now: datetime) -> float:
    if seg.pinned:
        return float("inf")  # never prune in normal GC

    recency = 1.0 / (1.0 + seconds_since(seg.last_touched_at, now))
    importance = {
        "decision": 1.0,
        "note": 0.8,
        "summary": 0.7,
        "code": 0.6,
        "message": 0.5,
        "log": 0.2,
    }.get(seg.type, 0.4)
    ref_factor = min(seg.refcount / 5.0, 1.0)
    gen_bonus = 0.1 if seg.generation == "young" else 0.0

    return 0.4 * recency + 0.3 * importance + 0.2 * ref_factor + 0.1 * gen_bonus


# -- ours

now = datetime(2026, 1, 2, tzinfo=UTC)
engine = GCEngine(EngineOptions(profile="s0"))
for kind in ("decision", "note", "summary", "code", "message", "log"):
    for refcount, generation, pinned in [(0, "young", False), (9, "old", False), (1, "old", True)]:
        segment = ContextSegment(
            text="text",
            type=kind,
            created_at=now - timedelta(minutes=refcount),
            refcount=refcount,
            generation=generation,
            pinned=pinned,
        )
        assert isclose(engine.score_segment(segment, now), compute_score(segment, now))
