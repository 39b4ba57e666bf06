"""Zones: safe, warning, danger, critical."""

from __future__ import annotations

from enum import StrEnum

from ctxgc.config import GCConfig
from ctxgc.errors import InputError


class Zone(StrEnum):
    """How full the context is."""

    SAFE = "safe"
    WARNING = "warning"
    DANGER = "danger"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The place of the zone in the order from safe (0) to critical (3)."""
        return _ORDER.index(self)


_ORDER = tuple(Zone)


def zone_of(percent: float, config: GCConfig) -> Zone:
    """Return the zone that a share of the context window lies in."""
    if percent >= config.critical_percent:
        return Zone.CRITICAL
    if percent >= config.danger_percent:
        return Zone.DANGER
    return Zone.WARNING if percent >= config.warning_percent else Zone.SAFE


def next_zone(current: Zone, percent: float, config: GCConfig) -> Zone:
    """Return the zone after `current`: entered at its start, left `zone_leave_points` below it."""
    entered = zone_of(percent, config)
    if entered.rank >= current.rank:
        return entered
    held = zone_of(percent + config.zone_leave_points, config)
    return min(current, held, key=lambda zone: zone.rank)


def percent_of(context_size: int, context_limit: int) -> float:
    """Return a size as percent of the limit, exact where the limit itself is meant.

    Raises:
        InputError: the size is below zero, or the limit not above it.
    """
    if context_limit <= 0:
        raise InputError(
            f"context_limit cannot be {context_limit}",
            hint="give the size of the model's window in tokens",
            field="context_limit",
        )
    if context_size < 0:
        raise InputError(
            f"context_size cannot be {context_size}", hint="zero or more", field="context_size"
        )
    return context_size * 100 / context_limit
