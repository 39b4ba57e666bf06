"""Answers of the resources: segments, collections and plans in lists."""

from __future__ import annotations

from ctxgc.mcp import returning
from ctxgc.mcp.answers.bench import Bench, Json
from ctxgc.mcp.context import Context
from ctxgc.mcp.finding import describe


def segments(context: Context, limit: int, offset: int) -> Json:
    """List a page of segments."""
    everything = sorted(context.heap, key=lambda segment: segment.position)
    page = everything[offset : offset + limit]
    more = {"next_offset": offset + limit} if len(everything) > offset + limit else {}
    return {
        "segments": [describe(context, segment) for segment in page],
        "total": len(everything),
        **more,
    }


def segment(bench: Bench, context: Context, reference: str) -> Json:
    """Show one segment."""
    segment = bench.finder(context).one(reference)
    return {
        **describe(context, segment),
        "origin": returning.origin(segment),
        "text": returning.part_of(segment.text, None, None)[0],
        "references": list(segment.references),
    }


def collections(bench: Bench, context: Context, limit: int) -> Json:
    """List the last collections."""
    rows = sorted(bench.store.load(bench.session_id, "collections"), reverse=True)
    return {"collections": [doc for _, doc in rows[:limit]], "total": context.saved.collections}


def usable_plans(bench: Bench, context: Context) -> Json:
    """List the plans that can be applied."""
    plans = bench.plans.usable(context.heap.version, context.clock())
    return {
        "plans": [
            {
                "plan_id": kept.plan_id,
                "made_at": kept.made_at.isoformat(),
                "segments": len(kept.plan),
                "tokens_freed": kept.plan.total_tokens_freed,
                "summary": kept.plan.reason,
            }
            for kept in plans
        ]
    }
