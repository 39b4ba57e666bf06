"""Answers about what stays: pins, what the host works on, and the configuration of a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ctxgc.config import GCConfig
from ctxgc.errors import ConfigError, InputError
from ctxgc.mcp import usage
from ctxgc.mcp.context import Context, DefaultStrategy, set_working_state
from ctxgc.mcp.request import Json, RequestContext
from ctxgc.session import ContextSegment, engine_options

MOST_PINNED_SHARE = 0.5
KEYS = (
    "target_percent", "recent_messages", "recent_user_messages", "decision_window_seconds",
    "recent_files", "batch", "score_profile", "auto_trigger",
)  # fmt: skip
"""Keys of the configuration that an agent may set by their own name."""

_LIMITS = {"soft_limit_tokens": "soft_limit_percent", "hard_limit_tokens": "hard_limit_percent"}
_KNOWN = (*KEYS, *_LIMITS, "context_limit", "strategy")


def pin(
    request: RequestContext,
    context: Context,
    references: Sequence[str],
    query: str | None,
    *,
    pinned: bool,
) -> Json:
    """Pin or unpin segments."""
    if not references and query is None:
        raise InputError("nothing is named", hint="give segment_ids or a query", field="query")
    found = request.finder(context).all(references, query)
    changed = [s for s in found.segments if s.pinned != pinned]
    if pinned:
        _check_pins(context, changed)
    for segment in changed:
        (context.session.pin if pinned else context.session.unpin)(segment.segment_id)
    stashed = [s.segment_id for s in found.segments if s.tier == "stashed"]
    return {
        "pinned" if pinned else "unpinned": [s.segment_id for s in changed],
        "unchanged": [s.segment_id for s in found.segments if s not in changed],
        **({"found_by_words": found.by_words} if found.by_words else {}),
        **({"stashed": stashed} if stashed and pinned else {}),
        "pins": len(context.heap.root_index.pinned),
        "pinned_tokens": usage.pinned_tokens(context),
        "usage": usage.change(context, context.tokens),
        "next": f"context_recall(handle='{stashed[0]}') brings it back"
        if stashed and pinned
        else "context_gc_analyze() (plans made before are stale)",
    }


def task(context: Context, said: Mapping[str, Any]) -> Json:
    """Set what the host works on."""
    set_working_state(context, said)
    saved, state, work = context.saved, context.parts.state, context.work()
    held = work.engine.compute_roots(work.state())
    return {
        "task_id": state.task_id,
        "depends_on": sorted(state.task_dependencies),
        "active_file": state.active_file,
        "line_range": list(state.active_range) if state.active_range else None,
        "open_files": saved.open_files,
        "breakpoints": [f"{path}:{line}" for path, line in saved.breakpoints],
        "roots": len(held),
        "usage": usage.change(context, context.tokens),
        "next": usage.next_call(context),
    }


def configure(context: Context, asked: Mapping[str, Any]) -> Json:
    """Set what is asked for."""
    changed = _set_keys(context, asked)
    return {
        "changed": changed,
        "config": _in_force(context),
        "usage": usage.size(context),
        "next": usage.next_call(context),
    }


def _check_pins(context: Context, new: Sequence[ContextSegment]) -> None:
    """Refuse pins that fill the window: nothing could be collected then."""
    most = int(context.limit * MOST_PINNED_SHARE)
    asked = sum(segment.tokens or 0 for segment in new)
    if usage.pinned_tokens(context) + asked > most:
        raise InputError(
            f"pins would hold more than {most} tokens, half of the window",
            hint="unpin others first, or compress what you want to keep",
            field="segment_ids",
            pinned_tokens=usage.pinned_tokens(context),
            asked_tokens=asked,
        )


# -- The configuration of a context


def _set_keys(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Set what is asked for, all of it or nothing, and return what changed.

    Raises:
        ConfigError: a key is unknown, or a value is wrong or contradicts another.
    """
    before = _in_force(context)
    _check_keys(asked)
    limit = _limit(context, asked)
    settings = {**context.saved.settings, **_settings(asked, limit)}
    config = context.base.replace(**settings)
    engine_options(config, limit)
    context.configure(settings)
    if "context_limit" in asked:
        context.session.budget.context_limit = limit
    if "strategy" in asked:
        context.saved.strategy = asked["strategy"]
    after = _in_force(context)
    return {
        key: {"before": before[key], "after": after[key]}
        for key in after
        if before[key] != after[key]
    }


def _in_force(context: Context) -> dict[str, Any]:
    """Return what can be configured, with the values in force."""
    config, limit = context.config, context.limit
    return {
        "context_limit": limit,
        "soft_limit_tokens": _tokens(config, "soft_limit_percent", limit),
        "hard_limit_tokens": _tokens(config, "hard_limit_percent", limit),
        **{key: getattr(config, key) for key in KEYS},
        "strategy": context.saved.strategy,
    }


def _check_keys(asked: Mapping[str, Any]) -> None:
    """Make sure that every key is known, and that what is no key of `GCConfig` has a sound value."""
    for key in asked:
        if key not in _KNOWN:
            raise ConfigError(
                f"'{key}' cannot be set here", hint=f"use one of: {', '.join(_KNOWN)}", key=key
            )
    for key in ("context_limit", *_LIMITS):
        if type(asked.get(key, 0)) is not int:
            raise ConfigError(
                f"{key} cannot be {asked[key]!r}", hint="give a whole number of tokens", key=key
            )
    strategies = get_args(DefaultStrategy)
    if asked.get("strategy", strategies[0]) not in strategies:
        raise ConfigError(
            f"strategy cannot be {asked['strategy']!r}",
            hint=f"use one of: {', '.join(strategies)}; a single prune may delete, if it is confirmed",
            key="strategy",
        )


def _limit(context: Context, asked: Mapping[str, Any]) -> int:
    limit: int = asked.get("context_limit", context.limit)
    if limit < 1:
        raise ConfigError(
            f"context_limit cannot be {limit}",
            hint="give the size of the model's window in tokens",
            key="context_limit",
        )
    return limit


def _settings(asked: Mapping[str, Any], limit: int) -> dict[str, Any]:
    found = {key: asked[key] for key in KEYS if key in asked}
    for name, key in _LIMITS.items():
        if name not in asked:
            continue
        if not 0 < asked[name] <= limit:
            raise ConfigError(
                f"{name} cannot be {asked[name]}",
                hint=f"between 1 and the context_limit of {limit}",
                key=name,
            )
        found[key] = asked[name] * 100 / limit
    return found


def _tokens(config: GCConfig, key: str, limit: int) -> int:
    share: float = getattr(config, key)
    return round(share * limit / 100)
