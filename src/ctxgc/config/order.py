"""How the percentages of a configuration stand to each other.

Limits that nobody set follow those that somebody set, so that `GCConfig(threshold_percent=5)` is a
whole configuration; two limits that were both set and contradict each other are an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.errors import ConfigError

# The share of the threshold that an unset target follows down to: 60 of 80, as in S2.
_TARGET_SHARE = 0.75

_AT_MOST = (
    ("target_percent", "threshold_percent"),
    ("threshold_percent", "hard_limit_percent"),
    ("soft_limit_percent", "hard_limit_percent"),
    ("prune_to_percent", "critical_percent"),
)
_BELOW = (
    ("warning_percent", "danger_percent"),
    ("danger_percent", "critical_percent"),
    ("zone_leave_points", "warning_percent"),
)
_FOLLOWS_DOWN = (
    ("threshold_percent", "hard_limit_percent", 1.0),
    ("soft_limit_percent", "hard_limit_percent", 1.0),
    ("target_percent", "threshold_percent", _TARGET_SHARE),
    ("prune_to_percent", "critical_percent", _TARGET_SHARE),
)


def settle(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values plus those defaults that have to move to agree with them."""
    values = dict(given)
    _lift(values, defaults, "hard_limit_percent", "threshold_percent")
    for key, limit, share in _FOLLOWS_DOWN:
        _lower(values, defaults, key, limit, share)
    return values


def leaders(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, str]:
    """Return the defaults that have to move, each with the key that it follows."""
    led_by = {"hard_limit_percent": "threshold_percent"}
    led_by.update({key: limit for key, limit, _ in _FOLLOWS_DOWN})
    return {key: led_by[key] for key in settle(given, defaults) if key not in given}


def check_order(config: msgspec.Struct) -> None:
    """Raise ConfigError, naming both keys, if two limits contradict each other."""
    for low, high in _AT_MOST:
        if getattr(config, low) > getattr(config, high):
            raise _contradiction(config, low, "is above", high)
    for low, high in _BELOW:
        if getattr(config, low) >= getattr(config, high):
            raise _contradiction(config, low, "is not below", high)


def _contradiction(config: msgspec.Struct, low: str, relation: str, high: str) -> ConfigError:
    return ConfigError(
        f"{low} ({getattr(config, low):g}) {relation} {high} ({getattr(config, high):g})",
        hint=f"lower {low} or raise {high}",
        keys=[low, high],
    )


def _lower(
    values: dict[str, Any], defaults: Mapping[str, Any], key: str, limit: str, share: float
) -> None:
    bound = _number(values.get(limit))
    if key not in values and bound is not None and defaults[key] > bound:
        values[key] = bound * share


def _lift(values: dict[str, Any], defaults: Mapping[str, Any], key: str, floor: str) -> None:
    bound = _number(values.get(floor))
    if key not in values and bound is not None and defaults[key] < bound:
        values[key] = bound


def _number(value: object) -> float | None:
    # What is no number is left for the type check, which names the key.
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
