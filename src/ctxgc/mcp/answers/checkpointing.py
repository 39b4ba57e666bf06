"""Answers about checkpoints."""

from __future__ import annotations

import msgspec

from ctxgc.mcp import checkpoints, usage
from ctxgc.mcp.answers.bench import MOST_LISTED, Bench, Json
from ctxgc.mcp.context import Context


def checkpoint(bench: Bench, context: Context, label: str) -> Json:
    """Keep the context."""
    made = checkpoints.make(context, label, bench.roots)
    context.writes.extend(bench.shelf().writes(made))
    return {
        "checkpoint_id": made.checkpoint_id,
        "label": label,
        "segments": len(made.conversation_history),
        "usage": usage.change(context, context.tokens),
        "next": f"context_checkpoint(action='restore', checkpoint_id='{made.checkpoint_id}')",
    }


def list_checkpoints(bench: Bench, context: Context) -> Json:
    """List the checkpoints."""
    return {
        "checkpoints": checkpoints.described(bench.shelf()),
        "usage": usage.size(context),
        "next": "context_checkpoint(action='restore', checkpoint_id)",
    }


def restore(bench: Bench, context: Context, wanted: str | None) -> Json:
    """Go back to a checkpoint."""
    before = context.tokens
    heap, done = checkpoints.restore(context, checkpoints.find(bench.shelf(), wanted))
    context.replace_heap(heap)
    listed = msgspec.to_builtins(done)
    return {
        **{k: v[:MOST_LISTED] if isinstance(v, list) else v for k, v in listed.items()},
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }
