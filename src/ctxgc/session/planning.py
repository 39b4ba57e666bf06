"""A collection as a plan: what would leave, and why, as data."""

from __future__ import annotations

from msgspec.structs import replace

from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, age_text, assemble
from ctxgc.core.score import KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment
from ctxgc.session.collecting import propose
from ctxgc.session.moves import moves_of
from ctxgc.session.verdict import Change
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCTriggerReason


def plan(w: Workings, target_tokens: int | None) -> PruningPlan:
    """Return what a collection would do, as a plan; nothing changes."""
    summaries, numbered = w.summaries, w.segmenter.numbered
    outcome = propose(w, GCTriggerReason.MANUAL, target_tokens)
    result = outcome.result
    reasons = {item.child_key: item.reason for item in result.removal_list}
    candidates = [
        _candidate(w, segment, reasons.get(segment.message_id, ""), action)
        for segment, action in _leaving(w, outcome.change)
    ]
    w.summaries, w.segmenter.numbered = summaries, numbered
    made = assemble(
        candidates,
        target_tokens=None,
        why=result.error or f"{w.plugin.name}: {len(candidates)} segments leave",
        tokens_before=result.tokens_before,
    )
    return replace(
        made,
        total_tokens_freed=result.tokens_freed,
        shortfall=result.shortfall,
        heap_version=w.heap.version,
    )


def _leaving(w: Workings, change: Change) -> list[tuple[ContextSegment, Action]]:
    """The segments that would leave the working tier, and how."""
    found: list[tuple[ContextSegment, Action]] = []
    for move in moves_of(w, change, frozenset()):
        found += [(w.heap.get(i), "stash") for i in move.stashed]
        if move.exchange is not None:
            replaced = [str(stand_in.derived_from) for stand_in in move.exchange.made]
            found += [(w.heap.get(i), "evacuate") for i in (*replaced, *move.exchange.dropped)]
    return found


def _candidate(
    w: Workings, segment: ContextSegment, reason: str, action: Action
) -> PruningCandidate:
    now = w.clock()
    age_seconds = (now - segment.created_at).total_seconds()
    score = KeepScore(w.config.score_profile, dict(w.config.score_weights))
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=score(segment, ScoreContext(now=now, step=w.heap.step)),
        tokens=segment.tokens or 0,
        reason=f"{reason}; {segment.type}, {age_text(age_seconds)} old",
        type=segment.type,
        age=age_seconds,
        action=action,
        bond=w.heap.bonds.group(segment),
    )
