"""How full the window is, what fills a context, and what to do; computed without looking at segments."""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxgc.mcp.context import Context
from ctxgc.session import Amount, ContextMonitor, Zone

UNKNOWN = "unknown"
_HEALTH = {"safe": "good", "warning": "fair", "danger": "poor", "critical": "critical"}
_FULL = ("warning", "danger", "critical")
_NOT_SEEN = (
    "The server does not see how full your window is, and counts only what it was given. "
    "`ctxgc install` sets up hooks that tell it."
)


class Shown(NamedTuple):
    """What answers tell of: the agent's window by its transcript, else what the server was given."""

    tokens: int
    limit: int
    percent: float
    zone: str
    is_transcript: bool = False


def shown(context: Context) -> Shown:
    """Return how full the window of the agent is, as its hooks and its status line see it.

    Without a transcript it is the context that the server was given; but the zone is unknown where nothing
    was given, or where a coding agent has a window of its own that the server does not see.
    """
    fill = context.window.fill()
    if fill is not None:
        return Shown(*fill, is_transcript=True)
    is_unknown = context.window.has_agent or not len(context.heap)
    zone = UNKNOWN if is_unknown else watch(context)[0].value
    return Shown(context.tokens, context.limit, context.tokens * 100 / context.limit, zone)


def size(context: Context) -> dict[str, Any]:
    """Return the tokens in use with the limits and the zone."""
    config, now = context.config, shown(context)
    return {
        "tokens": now.tokens,
        "soft_limit": int(now.limit * config.soft_limit_percent / 100),
        "hard_limit": int(now.limit * config.hard_limit_percent / 100),
        "context_limit": now.limit,
        "percent": round(now.percent, 1),
        "zone": now.zone,
    }


def change(context: Context, before: int) -> dict[str, Any]:
    """Return the tokens that the server holds before and after a change; the rest is as in `size`."""
    now = shown(context)
    return {
        "before": before,
        "after": context.tokens,
        "context_limit": now.limit,
        "percent": round(now.percent, 1),
        "zone": now.zone,
    }


def watch(context: Context, before: Zone | None = None) -> tuple[Zone, dict[str, Any] | None]:
    """Return the zone of a context, and the alert if it is fuller than the one before."""
    zone = context.zone if before is None else before
    monitor = ContextMonitor(context.config, zone=zone, clock=context.clock)
    alert = monitor.check_and_alert(context.tokens, context.limit)
    if alert is None:
        return monitor.zone, None
    return monitor.zone, {
        "level": alert.level,
        "percent": round(alert.ratio * 100, 1),
        "recommendation": alert.recommendation,
    }


def overview(context: Context) -> dict[str, Any]:
    """Return the whole picture: sizes, what fills the context by type, task and source, and advice."""
    ledger, state = context.heap.ledger, context.parts.state
    return {
        "usage": size(context),
        "health": _health(context),
        "segments": {
            "working": _plain(ledger.working),
            "stashed": _plain(ledger.stashed),
            "deleted": {"segments": 0, "tokens": 0, **context.saved.deleted},
            "pinned": len(context.heap.root_index.pinned),
        },
        "by_type": _by(context, "type"),
        "by_task": _by(context, "task"),
        "by_source": _by(context, "source"),
        "task": state.task_id,
        "active_file": state.active_file,
        "collections": context.collections,
        "recommendations": recommendations(context),
        "next": next_call(context),
    }


def recommendations(context: Context) -> list[str]:
    """Return what to do now, most urgent first; empty if nothing is needed."""
    found = []
    now = shown(context)
    if now.zone == UNKNOWN:
        found += [_NOT_SEEN] if context.window.has_agent else []
    elif now.zone != Zone.SAFE.value:
        found.append(ContextMonitor(context.config).get_recommendation(now.zone))
    pinned = pinned_tokens(context)
    if pinned * 2 > context.limit:
        found.append(f"Pins hold {pinned} tokens, over half of the window: unpin some.")
    logs = context.heap.ledger.amount("type", "log").tokens
    if context.tokens and logs * 2 > context.tokens and now.zone in _FULL:
        found.append(f"Logs hold {logs} of {context.tokens} tokens: prune those first.")
    return found


def next_call(context: Context) -> str:
    """Return the most useful call in the current zone."""
    if not len(context.heap):
        return "context_ingest(segments=[{text}]) or context_import(path)"
    if shown(context).zone not in _FULL:
        return "nothing is due; context_search(query) finds what was kept"
    return "context_gc_analyze()"


def pinned_tokens(context: Context) -> int:
    """Return how many tokens the pins hold."""
    return sum(context.heap.get(i).tokens or 0 for i in context.heap.root_index.pinned)


def _health(context: Context) -> str:
    return _HEALTH.get(shown(context).zone, UNKNOWN)


def _by(context: Context, dimension: Any) -> dict[str, int]:
    amounts = context.heap.ledger.by(dimension).items()
    largest = sorted(amounts, key=lambda item: (-item[1].tokens, str(item[0])))[:20]
    return {value or "none": amount.tokens for value, amount in largest}


def _plain(amount: Amount) -> dict[str, int]:
    return {"segments": amount.segments, "tokens": amount.tokens}
