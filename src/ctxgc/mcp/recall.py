"""Answers of the resources: segments, collections and plans in lists."""

from __future__ import annotations

from ctxgc.errors import UnknownSegmentError
from ctxgc.mcp import find as returning
from ctxgc.mcp import usage
from ctxgc.mcp.compress import CompressionDraft, Summary, put_in_place
from ctxgc.mcp.context import Context
from ctxgc.mcp.find import Bench, Json, describe, excerpt_for
from ctxgc.mcp.prune import note_fault
from ctxgc.stores import SearchFilters

# -- Answers of the tools that find something and bring it back


def search(
    bench: Bench, context: Context, query: str, filters: SearchFilters, page: tuple[int, int]
) -> Json:
    """List what matches, from an offset on, at most so many."""
    offset, limit = page
    hits = bench.finder(context).hits(query, filters, offset + limit + 1)
    shown_hits = hits[offset : offset + limit]
    found = [
        {
            **describe(context, context.heap.get(hit.key)),
            "score": round(hit.score, 3),
            "excerpt": excerpt_for(hit.doc["text"], query),
        }
        for hit in shown_hits
    ]
    more = {"next_offset": offset + limit} if len(hits) > offset + limit else {}
    first = f"context_recall(handle='{found[0]['handle']}')" if found else "try fewer words"
    return {"hits": found, **more, "usage": usage.size(context), "next": first}


def recall(
    bench: Bench,
    context: Context,
    reference: str,
    lines: tuple[int, int] | None,
    pattern: str | None,
) -> Json:
    """Show a text; bring a whole one back."""
    before = context.tokens
    try:
        segment = bench.finder(context).one(reference)
    except UnknownSegmentError:
        return _from_other_doors(bench, context, reference, lines, pattern)
    text, more = returning.part_of(segment.text, lines, pattern)
    note_fault(context, segment)
    whole = lines is None and pattern is None
    back = whole and returning.bring_back(context, segment)
    return {
        **describe(context, context.heap.get(segment.segment_id)),
        "origin": returning.origin(segment),
        "text": text,
        **({"more": more} if more else {}),
        "recalled": back,
        "usage": usage.change(context, before),
        "next": _go_on(context.handle(segment.segment_id), more) or usage.next_call(context),
    }


def _from_other_doors(
    bench: Bench,
    context: Context,
    handle: str,
    lines: tuple[int, int] | None,
    pattern: str | None,
) -> Json:
    doc = returning.from_other_doors(bench.store, handle) if bench.alone else None
    if doc is None:
        return {"unreachable": bench.finder(context).one(handle)}
    text, more = returning.part_of(doc["text"], lines, pattern)
    return {
        "handle": handle,
        "session_id": doc["session_id"],
        "origin": {key: doc.get(key) for key in ("type", "role", "trust", "file_path")},
        "text": text,
        **({"more": more} if more else {}),
        "recalled": False,
        "usage": usage.change(context, context.tokens),
        "next": _go_on(handle, more) or "it stays in the session that stashed it",
    }


def compress(context: Context, asked: CompressionDraft, summary: Summary) -> Json:
    """Put a summary in place."""
    before = context.tokens
    stand_in = put_in_place(context, asked.segment_ids, summary)
    return {
        "compressed": asked.segment_ids,
        "summary_id": stand_in.segment_id,
        "summary": summary.text,
        "by": summary.by,
        **({"tried": summary.tried} if summary.tried else {}),
        "tokens_saved": before - context.tokens,
        "usage": usage.change(context, before),
        "next": f"context_expand(segment_id='{stand_in.segment_id}') brings the original back",
    }


def expand(bench: Bench, context: Context, reference: str) -> Json:
    """Put originals back."""
    before = context.tokens
    segment = bench.finder(context).one(reference)
    back = returning.originals(context, segment)
    for original in back:
        returning.bring_back(context, original)
    return {
        "expanded": [original.segment_id for original in back],
        "text": returning.part_of("\n\n".join(s.text for s in back), None, None)[0],
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


def _go_on(handle: str, more: Json) -> str:
    if "from_line" not in more:
        return ""
    first = more["from_line"]
    return f"context_recall(handle='{handle}', lines=[{first}, {first + 500}])"


# -- Answers of the resources: segments, collections and plans in lists


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
