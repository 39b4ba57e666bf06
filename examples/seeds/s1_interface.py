"""S1 "GC Engine Interface": the four methods, called as the signatures say, from roots to a plan."""

from datetime import UTC, datetime, timedelta
from typing import Dict, List, Set

from ctxgc import ContextSegment, GCEngine, IGCEngine, PruningCandidate, PruningPlan

now = datetime(2026, 1, 2, tzinfo=UTC)
segments: List[ContextSegment] = [
    ContextSegment(segment_id="goal", text="mend the cart", type="note", references=["cart"]),
    ContextSegment(segment_id="cart", text="class Cart: ...", type="code", tags=["ref:rule"]),
    ContextSegment(segment_id="rule", text="no new packages", type="decision"),
    ContextSegment(segment_id="pin", text="ask before a release", type="note", pinned=True),
    ContextSegment(
        segment_id="log", text="tests ran " * 100, type="log",
        created_at=now - timedelta(days=1), tokens=200,
    ),
    ContextSegment(segment_id="chat", text="hello", type="message", refcount=2, tokens=2),
]
roots: Set[str] = {"goal"}
references: Dict[str, Set[str]] = {"goal": {"cart"}, "cart": {"rule"}}
engine: IGCEngine = GCEngine()

candidates: List[PruningCandidate] = engine.analyze_pruning_candidates(segments, roots)
reachable: Set[str] = engine.compute_reachability(roots, references)
score: float = engine.score_segment(segments[4], now)
plan: PruningPlan = engine.generate_pruning_plan(candidates, 150)

assert [candidate.segment_id for candidate in candidates] == ["log", "chat"]
assert reachable == {"goal", "cart", "rule"}
assert 0.0 < score < engine.score_segment(segments[2], now)  # a log of yesterday leaves sooner
assert (plan.stash_segments, plan.delete_segments, plan.total_tokens_freed) == (["log"], [], 200)
