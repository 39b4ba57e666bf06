"""Answers of the tools that take something in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxgc.errors import InputError
from ctxgc.mcp import usage
from ctxgc.mcp.answers.bench import MOST_LISTED, Bench, Json
from ctxgc.mcp.answers.leaving import collected
from ctxgc.mcp.context import Context
from ctxgc.mcp.due import collect_if_due
from ctxgc.mcp.importing import next_piece, note_offset
from ctxgc.mcp.intake import NewSegment, enter, take_messages, take_segments


def ingest(
    bench: Bench,
    context: Context,
    given: Sequence[NewSegment],
    messages: Sequence[Mapping[str, Any]],
) -> Json:
    """Take in a batch."""
    if not given and not messages:
        raise InputError(
            "there is nothing to ingest", hint="give segments or messages", field="segments"
        )
    before = context.tokens
    segments = take_segments(context, bench.finder(context), given)
    segments += take_messages(context, bench.counter, messages)
    taken = enter(context, segments)
    collected = _collect_if_due(context)
    names = {n.name: i for n, i in zip(given, taken.ids, strict=False) if n.name}
    return {
        "ingested": len(taken.new),
        "already_known": len(dict.fromkeys(taken.ids)) - len(taken.new),
        "segment_ids": taken.ids[:MOST_LISTED],
        **({"names": names} if names else {}),
        **({"warnings": taken.warnings[:10]} if taken.warnings else {}),
        **collected,
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


def import_piece(bench: Bench, context: Context, path: str) -> Json:
    """Take in the next piece of a transcript."""
    before = context.tokens
    real = bench.roots.checked(path)
    piece = next_piece(context, bench.counter, real)
    taken = enter(context, piece.segments)
    if piece.offset:
        note_offset(context, real, piece.offset)
    return {
        "ingested": len(taken.new),
        "already_known": len(taken.ids) - len(taken.new),
        "passed_over": piece.passed_over,
        "broken": piece.broken,
        "bytes_read": piece.offset,
        "bytes": piece.size,
        "done": piece.is_last,
        **_collect_if_due(context),
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


def _collect_if_due(context: Context) -> Json:
    done = collect_if_due(context)
    if done is None:
        return {}
    trigger = "hard limit" if done.plan.scope != "step" else "soft limit"
    return {"collected": collected(context, done, trigger)}
