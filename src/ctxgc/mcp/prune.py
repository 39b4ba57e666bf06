"""Pruning: analysis, pruning on request, and automatic collection after each ingest.

A bounded step of collection follows each ingest, a full one the hard limit. Recalls count: similar segments
are spared by the steps, and if most of what leaves comes back at once, the steps pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from ctxgc.collector import Analysis, Collection, Planner
from ctxgc.core import (
    Action,
    ContextSegment,
    Evidence,
    PruningCandidate,
    PruningPlan,
    RecallMemory,
    assemble,
    candidate_for,
)
from ctxgc.errors import InputError
from ctxgc.guard import ThrashBreaker
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context, PruneStrategy
from ctxgc.mcp.request import MOST_LISTED, FoundSegments, Json, RequestContext
from ctxgc.stores import Put

# -- Analysis


def make_plan(context: Context, target_tokens: int | None) -> PruningPlan:
    """Return what a collection would do.

    Args:
        context: what to look at.
        target_tokens: where to land; None is the configured target, or all garbage when that is met.

    Raises:
        InputError: the target is below zero.
    """
    engine, state = context.engine, context.state()
    if target_tokens is not None and target_tokens < 0:
        raise InputError(
            f"target_tokens cannot be {target_tokens}", hint="zero or more", field="target_tokens"
        )
    goal = target_tokens
    if goal is None:
        goal = engine.options.limit(engine.options.target_percent) or 0
    excess = context.tokens - goal
    if excess > 0:
        return engine.plan(state, free_tokens=excess)
    need = None if target_tokens is None else 0
    return Planner(engine.analyze(state), engine.options).plan(need)


def listed(
    context: Context, plan: PruningPlan, max_candidates: int, *, include_scores: bool
) -> list[dict[str, Any]]:
    """Return the first candidates of a plan, each with its reason."""
    return [
        _candidate_row(context, candidate, include_scores=include_scores)
        for candidate in islice(plan.candidates, max_candidates)
    ]


def proposed(context: Context, plan: PruningPlan, most: int = 5) -> list[dict[str, Any]]:
    """Return what is cold but important: not part of the plan, but worth a summary."""
    return [
        _candidate_row(context, proposal, include_scores=False)
        for proposal in plan.proposals[:most]
    ]


def _candidate_row(
    context: Context, candidate: PruningCandidate, *, include_scores: bool
) -> dict[str, Any]:
    name = context.heap.get(candidate.segment_id).name
    found: dict[str, Any] = {
        "segment_id": candidate.segment_id,
        **({"name": name} if name else {}),
        "type": candidate.type,
        **({"score": round(candidate.score, 3)} if include_scores else {}),
        "tokens": candidate.tokens,
        "action": candidate.action,
        "reason": candidate.reason,
    }
    return found


# -- Pruning by id, by words or by a plan


FIRM = frozenset(
    {
        "pinned", "current task", "active file", "open file", "breakpoint", "instructions",
        "original request", "open tool call", "session invariant",
    }
)  # fmt: skip
"""Roots that not even an explicit request moves: pins, and what the host works on."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What will leave, and what stays although it was named, each with the reason."""

    plan: PruningPlan
    kept: dict[str, str]


def choose(
    context: Context,
    segments: Sequence[ContextSegment],
    strategy: PruneStrategy,
    *,
    by_query: bool,
    confirm: bool,
) -> Chosen:
    """Return the plan that lets these segments go, with all that they are bonded to.

    What a query found stays if any root rule holds it; what was named by id only if a firm one does.
    """
    analysis = context.engine.analyze(context.state())
    leaving: dict[str, ContextSegment] = {}
    kept: dict[str, str] = {}
    for segment in segments:
        bond = _together(context, segment)
        why = _why_kept(analysis, bond, by_query=by_query)
        if segment.tier == "stashed" and strategy != "delete":
            why = "stashed already"
        if why:
            kept[segment.segment_id] = why
        else:
            leaving.update((member.segment_id, member) for member in bond)
    chosen = [
        _candidate(
            analysis, segment, _action(context, analysis, segment, strategy, confirm=confirm)
        )
        for segment in leaving.values()
    ]
    return Chosen(plan=_assembled(context, chosen), kept=kept)


def with_strategy(context: Context, plan: PruningPlan, strategy: PruneStrategy) -> PruningPlan:
    """Return a plan that deletes what it would have stashed, if that is the strategy."""
    if strategy != "delete":
        return plan
    changed = [
        msgspec.structs.replace(c, action="delete") if c.action == "stash" else c
        for c in plan.candidates
    ]
    return msgspec.structs.replace(_assembled(context, changed), stubs=plan.stubs)


def check_confirmed(plan: PruningPlan, *, confirm: bool) -> None:
    """Make sure that what a plan deletes was confirmed.

    Raises:
        InputError: it was not; `details` say what would be gone.
    """
    if plan.delete_segments and not confirm:
        raise InputError(
            f"{len(plan.delete_segments)} segments would be deleted for good",
            hint="call again with confirm=true, or with strategy='stash' to keep them recallable",
            field="confirm",
            segment_ids=plan.delete_segments[:50],
            tokens=plan.total_tokens_freed,
        )


def carry_out(context: Context, plan: PruningPlan) -> Collection:
    """Do what a plan says. What is deleted from the stash leaves as well."""
    if context.has_messages and plan.delete_segments:
        return _leave_to_session(context, plan)
    stashed = [i for i in plan.delete_segments if context.heap.get(i).tier == "stashed"]
    if stashed:
        plan = _assembled(context, [c for c in plan.candidates if c.segment_id not in stashed])
        for segment_id in stashed:
            context.heap.remove(segment_id)
        plan = msgspec.structs.replace(plan, heap_version=context.heap.version)
    done = context.engine.apply(plan, context.heap)
    context.stash.learn(list(done.replaced.values()))
    return msgspec.structs.replace(done, deleted=[*done.deleted, *stashed])


def _leave_to_session(context: Context, plan: PruningPlan) -> Collection:
    """Stash what a plan deletes: the session then deletes it, with every copy of the text that it keeps."""
    doomed = plan.delete_segments
    working = [
        msgspec.structs.replace(c, action="stash") if c.action == "delete" else c
        for c in plan.candidates
        if context.heap.is_working(c.segment_id)
    ]
    changed = msgspec.structs.replace(_assembled(context, working), stubs=plan.stubs)
    done = context.engine.apply(changed, context.heap)
    context.stash.learn(list(done.replaced.values()))
    context.erasures = doomed
    rest = [segment_id for segment_id in done.stashed if segment_id not in doomed]
    return msgspec.structs.replace(done, stashed=rest, deleted=doomed)


def record(context: Context, done: Collection, trigger: str) -> int:
    """Note a collection in the history and return its number."""
    context.saved.collections += 1
    number = context.saved.collections
    reasons = {c.segment_id: c.reason for c in done.plan.candidates}
    doc: dict[str, Any] = {
        "number": number,
        "at": context.clock().isoformat(),
        "trigger": trigger,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "stashed": done.stashed,
        "deleted": done.deleted,
        "replaced": done.replaced,
        "reasons": reasons,
    }
    context.writes.append(Put("collections", f"{number:06d}", doc))
    return number


def _together(context: Context, segment: ContextSegment) -> list[ContextSegment]:
    """A segment with what goes when it goes: its bond, or the stub that would recall nothing."""
    heap = context.heap
    if segment.tier == "working":
        return [heap.get(member) for member in heap.bonds.group(segment)]
    sources = (heap.get(source) for source in heap.backrefs.get(segment.segment_id, ()))
    return [segment, *(s for s in sources if s.derived_from == segment.segment_id)]


def _why_kept(analysis: Analysis, bond: Sequence[ContextSegment], *, by_query: bool) -> str:
    """The first reason that holds one of these; empty when none does."""
    for segment in bond:
        if segment.pinned:
            return "pinned: unpin it first"
        for reason in analysis.roots.why(segment.segment_id):
            if by_query or reason in FIRM:
                return reason
    return ""


def _action(
    context: Context,
    analysis: Analysis,
    segment: ContextSegment,
    strategy: PruneStrategy,
    *,
    confirm: bool,
) -> Action:
    """`auto` deletes only a confirmed, unreachable copy of what stays; all else it stashes."""
    if strategy != "auto":
        return strategy
    if not confirm or segment.superseded_how != "identical":
        return "stash"
    newer = context.heap.peek(segment.superseded_by or "")
    has_copy = newer is not None and newer.tier == "working"
    return "delete" if has_copy and not analysis.is_reachable(segment.segment_id) else "stash"


def _candidate(analysis: Analysis, segment: ContextSegment, action: Action) -> PruningCandidate:
    live = analysis.is_reachable(segment.segment_id)
    score = analysis.scores.get(segment.segment_id, 0.0)
    now = analysis.state.now
    return candidate_for(
        segment,
        now,
        score,
        Evidence(kind="asked"),
        action=action,
        reachable=live,
        freed=(segment.tokens or 0) if segment.tier == "working" else 0,
    )


def _assembled(context: Context, chosen: list[PruningCandidate]) -> PruningPlan:
    return assemble(
        chosen,
        target_tokens=None,
        tokens_before=context.tokens,
        heap_version=context.heap.version,
    )


# -- Answers


_NOTHING: Json = {"stashed": [], "deleted": [], "tokens_saved": 0}
_STUCK = "unpin or finish tasks: all that is left is held by roots"


def analyze(
    request: RequestContext,
    context: Context,
    max_candidates: int,
    *,
    include_scores: bool,
    target_tokens: int | None,
    apply: bool,
) -> Json:
    """Say what may leave and why; apply the plan if that is asked for."""
    size = usage.size(context)
    plan = make_plan(context, target_tokens)
    found: Json = {
        "usage": size,
        "candidates": listed(context, plan, max_candidates, include_scores=include_scores),
        "plan": {
            "segments": len(plan),
            "tokens_freed": plan.total_tokens_freed,
            "tokens_after": plan.tokens_after,
            "short_of_target": plan.shortfall,
            "summary": plan.reason,
        },
        "worth_compressing": proposed(context, plan),
    }
    if apply:
        return {**found, **_apply(context, Chosen(plan=plan, kept={}), "analyze")}
    if not len(plan):
        return {**found, "next": usage.next_call(context) if not plan.shortfall else _STUCK}
    kept = request.plans.keep(plan, context.clock())
    found["plan"]["plan_id"] = kept.plan_id
    return {**found, "next": f"context_gc_prune(plan_id='{kept.plan_id}')"}


def prune(
    request: RequestContext,
    context: Context,
    references: Sequence[str],
    *,
    plan_id: str | None,
    query: str | None,
    strategy: PruneStrategy | None,
    confirm: bool,
    dry_run: bool,
) -> Json:
    """Let go what is named, if it may go."""
    _one_way(references, plan_id, query)
    how = strategy or context.saved.strategy
    found = FoundSegments(segments=[], by_words={})
    if plan_id is not None:
        kept = request.plans.get(plan_id, context.heap.version, context.clock())
        chosen = Chosen(plan=with_strategy(context, kept.plan, how), kept={})
    else:
        found = request.finder(context).all(references, query)
        chosen = choose(context, found.segments, how, by_query=query is not None, confirm=confirm)
    check_confirmed(chosen.plan, confirm=confirm or dry_run)
    meant = {"found_by_words": found.by_words} if found.by_words else {}
    if dry_run:
        return {**meant, **_foretold(context, chosen)}
    return {**meant, **_apply(context, chosen, "prune")}


def collected(context: Context, done: Collection, trigger: str) -> Json:
    """Note a collection in the history and say what it did."""
    return {
        "collection": record(context, done, trigger),
        "trigger": trigger,
        "stashed": done.stashed[:MOST_LISTED],
        "deleted": done.deleted[:MOST_LISTED],
        "tokens_saved": done.tokens_freed,
    }


def _apply(context: Context, chosen: Chosen, trigger: str) -> Json:
    before = context.tokens
    done = carry_out(context, chosen.plan)
    moved = bool(done.stashed or done.deleted)
    return {
        **(collected(context, done, trigger) if moved else _NOTHING),
        **({"replaced": done.replaced} if done.replaced else {}),
        **({"kept": chosen.kept} if chosen.kept else {}),
        "usage": usage.change(context, before),
        "next": "context_recall(handle) brings a stashed segment back"
        if done.stashed
        else usage.next_call(context),
    }


def _foretold(context: Context, chosen: Chosen) -> Json:
    plan = chosen.plan
    return {
        "dry_run": True,
        "would_stash": [*plan.stash_segments, *plan.evacuate_segments][:MOST_LISTED],
        "would_delete": plan.delete_segments[:MOST_LISTED],
        "tokens_saved": plan.total_tokens_freed,
        **({"kept": chosen.kept} if chosen.kept else {}),
        "usage": {
            **usage.change(context, context.tokens),
            "after": context.tokens - plan.total_tokens_freed,
        },
        "next": "call again with dry_run=false",
    }


def _one_way(references: Sequence[str], plan_id: str | None, query: str | None) -> None:
    if sum((bool(references), plan_id is not None, query is not None)) != 1:
        raise InputError(
            "name what to prune in exactly one way",
            hint="give segment_ids, or a plan_id of context_gc_analyze, or a query",
            field="segment_ids",
        )


# -- Automatic collection


def note_fault(context: Context, segment: ContextSegment) -> None:
    """Take note that a segment was asked for; it counts if that had left."""
    if segment.tier != "stashed":
        return
    recalls, breaker = RecallMemory(), _breaker(context)
    recalls.restate(context.saved.ghosts)
    recalls.note(segment, context.heap.updates)
    breaker.note_back([segment.segment_id], context.heap.updates)
    context.saved.ghosts, context.saved.thrashing = recalls.to_doc(), breaker.to_doc()


def collect_if_due(context: Context) -> Collection | None:
    """Do the bounded bit of collecting that follows each arrival; all of it at the hard limit."""
    if not context.config.auto_trigger:
        return None
    breaker = _breaker(context)
    if context.engine.is_due(context.heap):
        done: Collection | None = _make_room(context, breaker)
    elif breaker.is_paused(context.heap.updates):
        return None
    else:
        done = context.engine.step(context.state())
    if done is None or not (done.stashed or done.deleted):
        return None
    breaker.note_left([*done.stashed, *done.replaced], context.heap.updates)
    context.saved.thrashing = breaker.to_doc()
    context.stash.learn(list(done.replaced.values()))
    return done


def _make_room(context: Context, breaker: ThrashBreaker) -> Collection:
    """Collect to the usual target; deeper, when collections would follow each other otherwise."""
    options, limit = context.engine.options, context.saved.context_limit
    target = limit * options.target_percent / 100 * breaker.take_depth()
    done = context.engine.collect(context.state(), free_tokens=max(0, context.tokens - int(target)))
    breaker.note_room(context.heap.updates, (done.tokens_before - done.tokens_after) / limit)
    context.saved.thrashing = breaker.to_doc()
    return done


def _breaker(context: Context) -> ThrashBreaker:
    breaker = ThrashBreaker()
    breaker.restate(context.saved.thrashing)
    return breaker
