"""Configuring: the agent sets limits, windows, batch size and strategy of its own context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxgc.config import GCConfig
from ctxgc.errors import ConfigError
from ctxgc.mcp.context import Context, engine_options

KEYS = (
    "target_percent", "recent_messages", "recent_user_messages", "decision_window_seconds",
    "recent_files", "batch", "score_profile", "auto_trigger",
)  # fmt: skip
"""Keys of the configuration that an agent may set by their own name."""

_LIMITS = {"soft_limit_tokens": "soft_limit_percent", "hard_limit_tokens": "hard_limit_percent"}


def configure(context: Context, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Set what is asked for, all of it or nothing, and return what changed.

    Raises:
        ConfigError: a key is unknown, or a value is wrong or contradicts another.
    """
    before = shown(context)
    limit = _limit(context, asked)
    settings = {**context.saved.settings, **_settings(asked, limit)}
    config = context.base.replace(**settings)
    engine_options(config, limit)
    context.saved.settings = settings
    context.config = config
    if "context_limit" in asked:
        context.saved.context_limit, context.saved.limit_by_agent = limit, True
    if "strategy" in asked:
        context.saved.strategy = asked["strategy"]
    after = shown(context)
    return {
        key: {"before": before[key], "after": after[key]}
        for key in after
        if before[key] != after[key]
    }


def shown(context: Context) -> dict[str, Any]:
    """Return what can be configured with the values in force."""
    config, limit = context.config, context.saved.context_limit
    return {
        "context_limit": limit,
        "soft_limit_tokens": _tokens(config, "soft_limit_percent", limit),
        "hard_limit_tokens": _tokens(config, "hard_limit_percent", limit),
        **{key: getattr(config, key) for key in KEYS},
        "strategy": context.saved.strategy,
    }


def _limit(context: Context, asked: Mapping[str, Any]) -> int:
    limit: int = asked.get("context_limit", context.saved.context_limit)
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
