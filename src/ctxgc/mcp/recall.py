"""Answers that find segments and bring them back, and lists of what a context holds."""

from __future__ import annotations

from typing import Any

from ctxgc.errors import InputError, UnknownSegmentError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context
from ctxgc.mcp.prune import collect_if_due
from ctxgc.mcp.request import Json, RequestContext, describe, excerpt_for
from ctxgc.session import (
    HANDLE,
    LEGACY_KEY,
    SERVER_KEY,
    ContextSegment,
    SearchFilters,
    Store,
    drain_inbox,
    excerpt,
)

MOST_SHOWN = 50_000


def search(
    request: RequestContext,
    context: Context,
    query: str,
    filters: SearchFilters,
    page: tuple[int, int],
) -> Json:
    """List what matches, from an offset on, at most so many."""
    offset, limit = page
    hits = request.finder(context).hits(query, filters, offset + limit + 1)
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
    request: RequestContext,
    context: Context,
    reference: str,
    lines: tuple[int, int] | None,
    pattern: str | None,
) -> Json:
    """Show a text; bring a whole one back."""
    before = context.tokens
    try:
        segment = request.finder(context).one(reference)
    except UnknownSegmentError:
        return _recall_elsewhere(request, context, reference, lines, pattern)
    text, more = _part_of(_told(context, segment), lines, pattern)
    whole = lines is None and pattern is None
    back = whole and context.work().bring_back(segment)
    if not back:
        context.session.note_fault(segment.segment_id)
    collected = collect_if_due(context) if back else {}
    return {
        **describe(context, context.heap.get(segment.segment_id)),
        "origin": _origin(segment),
        "text": text,
        **({"more": more} if more else {}),
        "recalled": back,
        **collected,
        "usage": usage.change(context, before),
        "next": _go_on(context.handle(segment.segment_id), more) or usage.next_call(context),
    }


def _told(context: Context, segment: ContextSegment) -> str:
    """Return what a model that asks for a segment needs: for a call also what it found."""
    if segment.part == "tool_call":
        return context.session.read(segment.segment_id, together=True)
    return context.work().text_of(segment)


def _recall_elsewhere(
    request: RequestContext,
    context: Context,
    handle: str,
    lines: tuple[int, int] | None,
    pattern: str | None,
) -> Json:
    doc = _find_elsewhere(request.store, handle) if request.alone else None
    if doc is None:
        return {"unreachable": request.finder(context).one(handle)}
    text, more = _part_of(doc["text"], lines, pattern)
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


def expand(request: RequestContext, context: Context, reference: str) -> Json:
    """Put originals back."""
    before = context.tokens
    segment = request.finder(context).one(reference)
    behind = _originals(context, segment)
    for original in behind:
        context.work().bring_back(original)
    return {
        "expanded": [s.segment_id for s in behind if context.heap.is_working(s.segment_id)],
        "text": _part_of("\n\n".join(s.text for s in behind), None, None)[0],
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


def _go_on(handle: str, more: Json) -> str:
    if "from_line" not in more:
        return ""
    first = more["from_line"]
    return f"context_recall(handle='{handle}', lines=[{first}, {first + 500}])"


# -- Lists


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


def segment(request: RequestContext, context: Context, reference: str) -> Json:
    """Show one segment."""
    segment = request.finder(context).one(reference)
    return {
        **describe(context, segment),
        "origin": _origin(segment),
        "text": _part_of(context.work().text_of(segment), None, None)[0],
        "references": list(segment.references),
    }


def collections(request: RequestContext, context: Context, limit: int) -> Json:
    """List the last collections."""
    rows = sorted(request.store.load(request.session_id, "collections"), reverse=True)
    found = [_collection(context, int(key), doc) for key, doc in rows[:limit]]
    return {"collections": found, "total": context.collections}


def _collection(context: Context, number: int, doc: Json) -> Json:
    """Describe a collection: what this server said of it, and what the session recorded."""
    if "result" not in doc:
        return doc
    result = doc["result"]
    items, said = result["removal_list"], result["details"]
    reasons = {item["child_key"]: item["reason"] for item in items if item["child_key"]}
    return {
        "number": number,
        **({"at": said["at"]} if "at" in said else {}),
        "trigger": said.get("trigger", result["trigger_reason"]),
        "tokens_before": result["tokens_before"],
        "tokens_after": result["tokens_after"],
        "messages": [message_id for item in items for message_id in item["message_ids"]],
        **_moved(context, said),
        "reasons": said.get("reasons", reasons),
    }


def _moved(context: Context, said: Json) -> Json:
    """Name the segments that this server moved, and what is in their place now."""
    if "stashed" not in said:
        return {}
    stand_ins = {s.derived_from: s.segment_id for s in context.heap.working()}
    replaced = {i: stand_ins[i] for i in said["stashed"] if i in stand_ins}
    return {"stashed": said["stashed"], "deleted": said["deleted"], "replaced": replaced}


def usable_plans(request: RequestContext, context: Context) -> Json:
    """List the plans that can be applied."""
    plans = request.plans.usable(request.revision(), context.clock())
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


# -- Texts and originals


def _part_of(
    text: str, lines: tuple[int, int] | None, pattern: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the requested part of a text, and where to continue if it is too long to show."""
    wanted = excerpt(text, lines=lines, pattern=pattern)
    if len(wanted) <= MOST_SHOWN:
        return wanted, {}
    cut = wanted.rfind("\n", 0, MOST_SHOWN)
    shown = wanted[: cut if cut > 0 else MOST_SHOWN]
    first = (lines[0] if lines else 1) + shown.count("\n")
    more = {"characters": len(wanted) - len(shown)}
    return shown, more if pattern else {**more, "from_line": first + (1 if cut > 0 else 0)}


def _originals(context: Context, segment: ContextSegment) -> list[ContextSegment]:
    """Return the stashed segments behind a summary or stub, or the segment itself if it is stashed.

    Raises:
        InputError: nothing was compressed into this segment.
    """
    if segment.tier == "stashed":
        return [segment]
    behind = context.work().behind(segment)
    if behind == [segment.segment_id]:
        raise InputError(
            f"'{segment.segment_id}' was not compressed",
            hint="context_recall(handle) shows its text",
            field="segment_id",
        )
    return [context.heap.get(i) for i in behind]


def _origin(segment: ContextSegment) -> dict[str, Any]:
    """Return where a text comes from, so that it is not taken for an instruction."""
    known = {
        "type": segment.type,
        "role": segment.role,
        "trust": segment.trust,
        "file_path": segment.file_path,
        "lines": list(segment.line_range) if segment.line_range else None,
        "command": segment.command,
        "created_at": segment.created_at.isoformat(),
    }
    return {key: value for key, value in known.items() if value is not None}


def _is_own(store: Store, session_id: str) -> bool:
    """Return whether a server began a session: it is its caller's."""
    doc = store.get(session_id, "state", SERVER_KEY)
    if doc is not None:
        return bool(doc.get("is_own"))
    known = (store.get(session_id, "state", key) is not None for key in (LEGACY_KEY, "session"))
    return list(known) == [True, False]


def _find_elsewhere(store: Store, handle: str) -> dict[str, Any] | None:
    """Return the document of a segment that another session of this store stashed under a handle.

    Only a whole handle finds anything, and contexts of other callers are never searched.
    """
    if not HANDLE.fullmatch(handle):
        return None
    drain_inbox(store)
    for info in store.sessions():
        if _is_own(store, info.session_id):
            continue
        for _, doc in store.load(info.session_id, "segments"):
            if doc.get("handle") == handle:
                return {**doc, "session_id": info.session_id}
    return None
