"""Answers of the tools that say what stays: pins, the work at hand, the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.mcp import usage
from ctxgc.mcp.answers.bench import Bench, Json
from ctxgc.mcp.configuring import configure as set_keys
from ctxgc.mcp.configuring import shown
from ctxgc.mcp.context import Context
from ctxgc.mcp.platform import set_working_state

MOST_PINNED_SHARE = 0.5


def pin(
    bench: Bench, context: Context, references: Sequence[str], query: str | None, *, pinned: bool
) -> Json:
    """Pin or unpin what is named."""
    if not references and query is None:
        raise InputError("nothing is named", hint="give segment_ids or a query", field="query")
    found = bench.finder(context).all(references, query)
    changed = [s for s in found.segments if s.pinned != pinned]
    if pinned:
        _check_pins(context, changed)
    for segment in changed:
        (context.heap.pin if pinned else context.heap.unpin)(segment.segment_id)
    stashed = [s.segment_id for s in found.segments if s.tier == "stashed"]
    return {
        "pinned" if pinned else "unpinned": [s.segment_id for s in changed],
        "unchanged": [s.segment_id for s in found.segments if s not in changed],
        **({"found_by_words": found.by_words} if found.by_words else {}),
        **({"stashed": stashed} if stashed and pinned else {}),
        "pins": len(context.heap.recent.pinned),
        "pinned_tokens": usage.pinned_tokens(context),
        "usage": usage.change(context, context.tokens),
        "next": f"context_recall(handle='{stashed[0]}') brings it back"
        if stashed and pinned
        else "context_gc_analyze() (plans made before are stale)",
    }


def task(context: Context, said: Mapping[str, Any]) -> Json:
    """Note what the host works on."""
    set_working_state(context, said)
    saved = context.saved
    held = context.engine.compute_roots(context.state())
    return {
        "task_id": saved.task_id,
        "depends_on": saved.depends_on,
        "active_file": saved.active_file,
        "line_range": list(saved.active_range) if saved.active_range else None,
        "open_files": saved.open_files,
        "breakpoints": [f"{path}:{line}" for path, line in saved.breakpoints],
        "roots": len(held),
        "usage": usage.change(context, context.tokens),
        "next": usage.next_call(context),
    }


def configure(context: Context, asked: Mapping[str, Any]) -> Json:
    """Set what is asked for."""
    changed = set_keys(context, asked)
    return {
        "changed": changed,
        "config": shown(context),
        "usage": usage.size(context),
        "next": usage.next_call(context),
    }


def _check_pins(context: Context, new: Sequence[ContextSegment]) -> None:
    """Pins may not fill the window: then nothing could ever be collected."""
    most = int(context.saved.context_limit * MOST_PINNED_SHARE)
    asked = sum(segment.tokens or 0 for segment in new)
    if usage.pinned_tokens(context) + asked > most:
        raise InputError(
            f"pins would hold more than {most} tokens, half of the window",
            hint="unpin others first, or compress what you want to keep",
            field="segment_ids",
            pinned_tokens=usage.pinned_tokens(context),
            asked_tokens=asked,
        )
