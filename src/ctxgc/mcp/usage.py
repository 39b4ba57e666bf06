"""How full a context is, what fills it, and what to do about it; computed without looking at segments."""

from __future__ import annotations

from typing import Any

from ctxgc.core import Amount
from ctxgc.guard import ContextMonitor, Zone
from ctxgc.mcp.context import Context


def size(context: Context) -> dict[str, Any]:
    """Return the tokens in use with the limits and the zone."""
    options = context.engine.options
    limit = context.saved.context_limit
    return {
        "tokens": context.tokens,
        "soft_limit": options.limit(options.soft_limit_percent),
        "hard_limit": options.limit(options.hard_limit_percent),
        "context_limit": limit,
        "percent": round(context.tokens * 100 / limit, 1),
        "zone": watch(context)[0].value,
    }


def change(context: Context, before: int) -> dict[str, Any]:
    """Return the tokens before and after a change, with the zone that it leads to."""
    limit = context.saved.context_limit
    return {
        "before": before,
        "after": context.tokens,
        "context_limit": limit,
        "percent": round(context.tokens * 100 / limit, 1),
        "zone": watch(context)[0].value,
    }


def watch(context: Context) -> tuple[Zone, dict[str, Any] | None]:
    """Return the zone of a context, and the alert if a fuller one was entered since it was noted."""
    monitor = ContextMonitor(context.config, zone=Zone(context.saved.zone), clock=context.clock)
    alert = monitor.check_and_alert(context.tokens, context.saved.context_limit)
    if alert is None:
        return monitor.zone, None
    return monitor.zone, {
        "level": alert.level,
        "percent": round(alert.ratio * 100, 1),
        "recommendation": alert.recommendation,
    }


def overview(context: Context) -> dict[str, Any]:
    """Return the whole picture: sizes, what fills the context by type, task and source, and advice."""
    ledger, saved = context.heap.ledger, context.saved
    return {
        "usage": size(context),
        "health": _health(context),
        "segments": {
            "working": _plain(ledger.working),
            "stashed": _plain(ledger.stashed),
            "deleted": _plain(ledger.deleted),
            "pinned": len(context.heap.root_index.pinned),
        },
        "by_type": _by(context, "type"),
        "by_task": _by(context, "task"),
        "by_source": _by(context, "source"),
        "task": saved.task_id,
        "active_file": saved.active_file,
        "collections": saved.collections,
        "recommendations": recommendations(context),
        "next": next_call(context),
    }


def recommendations(context: Context) -> list[str]:
    """Return what to do now, most urgent first; empty if nothing is needed."""
    found = []
    zone = watch(context)[0]
    if zone is not Zone.SAFE:
        found.append(ContextMonitor(context.config).get_recommendation(zone.value))
    pinned = pinned_tokens(context)
    if pinned * 2 > context.saved.context_limit:
        found.append(f"Pins hold {pinned} tokens, over half of the window: unpin some.")
    logs = context.heap.ledger.amount("type", "log").tokens
    if context.tokens and logs * 2 > context.tokens and zone is not Zone.SAFE:
        found.append(f"Logs hold {logs} of {context.tokens} tokens: prune those first.")
    return found


def next_call(context: Context) -> str:
    """Return the most useful call in the current zone."""
    if not len(context.heap):
        return "context_ingest(segments=[{text}]) or context_import(path)"
    if watch(context)[0] is Zone.SAFE:
        return "nothing is due; context_search(query) finds what was kept"
    return "context_gc_analyze()"


def pinned_tokens(context: Context) -> int:
    """Return how many tokens the pins hold."""
    return sum(context.heap.get(i).tokens or 0 for i in context.heap.root_index.pinned)


def _health(context: Context) -> str:
    zone = watch(context)[0]
    return {"safe": "good", "warning": "fair", "danger": "poor", "critical": "critical"}[zone.value]


def _by(context: Context, dimension: Any) -> dict[str, int]:
    amounts = context.heap.ledger.by(dimension).items()
    largest = sorted(amounts, key=lambda item: (-item[1].tokens, str(item[0])))[:20]
    return {value or "none": amount.tokens for value, amount in largest}


def _plain(amount: Amount) -> dict[str, int]:
    return {"segments": amount.segments, "tokens": amount.tokens}
