"""Answers of the tools that let something go: analysis first, then pruning."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.apply import Collection
from ctxgc.errors import InputError
from ctxgc.mcp import analysis, pruning, usage
from ctxgc.mcp.answers.bench import MOST_LISTED, Bench, Json
from ctxgc.mcp.context import Context, PruneStrategy
from ctxgc.mcp.finding import Found

_NOTHING: Json = {"stashed": [], "deleted": [], "tokens_saved": 0}
_STUCK = "unpin or finish tasks: all that is left is held by roots"


def analyze(
    bench: Bench,
    context: Context,
    max_candidates: int,
    *,
    include_scores: bool,
    target_tokens: int | None,
    apply: bool,
) -> Json:
    """Say what may leave and why; apply the plan if that is asked for."""
    size = usage.size(context)
    plan = analysis.make_plan(context, target_tokens)
    found: Json = {
        "usage": size,
        "candidates": analysis.listed(context, plan, max_candidates, include_scores=include_scores),
        "plan": {
            "segments": len(plan),
            "tokens_freed": plan.total_tokens_freed,
            "tokens_after": plan.tokens_after,
            "short_of_target": plan.shortfall,
            "summary": plan.reason,
        },
        "worth_compressing": analysis.proposed(context, plan),
    }
    if apply:
        return {**found, **_apply(context, pruning.Chosen(plan=plan, kept={}), "analyze")}
    if not len(plan):
        return {**found, "next": usage.next_call(context) if not plan.shortfall else _STUCK}
    kept = bench.plans.keep(plan, context.clock())
    found["plan"]["plan_id"] = kept.plan_id
    return {**found, "next": f"context_gc_prune(plan_id='{kept.plan_id}')"}


def prune(
    bench: Bench,
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
    found = Found(segments=[], by_words={})
    if plan_id is not None:
        kept = bench.plans.get(plan_id, context.heap.version, context.clock())
        chosen = pruning.Chosen(plan=pruning.with_strategy(context, kept.plan, how), kept={})
    else:
        found = bench.finder(context).all(references, query)
        chosen = pruning.choose(
            context, found.segments, how, by_query=query is not None, confirm=confirm
        )
    pruning.check_confirmed(chosen.plan, confirm=confirm or dry_run)
    meant = {"found_by_words": found.by_words} if found.by_words else {}
    if dry_run:
        return {**meant, **_foretold(context, chosen)}
    return {**meant, **_apply(context, chosen, "prune")}


def collected(context: Context, done: Collection, trigger: str) -> Json:
    """Note a collection in the history and say what it did."""
    return {
        "collection": pruning.record(context, done, trigger),
        "trigger": trigger,
        "stashed": done.stashed[:MOST_LISTED],
        "deleted": done.deleted[:MOST_LISTED],
        "tokens_saved": done.tokens_freed,
    }


def _apply(context: Context, chosen: pruning.Chosen, trigger: str) -> Json:
    before = context.tokens
    done = pruning.carry_out(context, chosen.plan)
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


def _foretold(context: Context, chosen: pruning.Chosen) -> Json:
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
