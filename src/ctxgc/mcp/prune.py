"""Pruning: what may leave and why, and letting it go, by plan, by id or by words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from ctxgc.errors import InputError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context
from ctxgc.mcp.request import MOST_LISTED, FoundSegments, Json, RequestContext
from ctxgc.session import Chosen, Collection, PruneStrategy, PruningCandidate, PruningPlan


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
    plan = context.work().plan(target_tokens)
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
    kept = request.plans.keep(plan, context.clock(), request.revision())
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
    how, work = strategy or context.saved.strategy, context.work()
    found = FoundSegments(segments=[], by_words={})
    if plan_id is not None:
        plan = request.plans.get(plan_id, request.revision(), context.clock()).plan
        plan = replace(plan, heap_version=context.heap.version)
        chosen = work.deleting(plan) if how == "delete" else Chosen(plan=plan, kept={})
    else:
        found = request.finder(context).all(references, query)
        chosen = work.choose(found.segments, how, by_query=query is not None, confirm=confirm)
    check_confirmed(chosen.plan, confirm=confirm or dry_run)
    meant = {"found_by_words": found.by_words} if found.by_words else {}
    if dry_run:
        return {**meant, **_foretold(context, chosen)}
    return {**meant, **_apply(context, chosen, "prune")}


def collected(context: Context, done: Collection, trigger: str) -> Json:
    """Say what a collection did."""
    return {
        "collection": context.collections,
        "trigger": trigger,
        "stashed": done.stashed[:MOST_LISTED],
        "deleted": done.deleted[:MOST_LISTED],
        "tokens_saved": done.tokens_freed,
    }


def collect_if_due(context: Context) -> Json:
    """Do what collecting is due after something came in, and say what it did, if anything."""
    done = context.work().collect_if_due()
    if done is None:
        return {}
    trigger = "hard limit" if done.plan.scope != "step" else "soft limit"
    return {"collected": collected(context, done, trigger)}


def _apply(context: Context, chosen: Chosen, trigger: str) -> Json:
    before = context.tokens
    done = context.work().apply(chosen.plan, trigger)
    note_deleted(context, done)
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


def note_deleted(context: Context, done: Collection) -> None:
    """Count what is gone for good."""
    tokens = {c.segment_id: c.tokens for c in done.plan.candidates}
    known = context.saved.deleted
    context.saved.deleted = {
        "segments": known.get("segments", 0) + len(done.deleted),
        "tokens": known.get("tokens", 0) + sum(tokens.get(i, 0) for i in done.deleted),
    }
