"""Zones: safe, warning, danger, critical."""

from __future__ import annotations

from enum import StrEnum

from ctxgc.config import GCConfig


class Zone(StrEnum):
    """How full the context is."""

    SAFE = "safe"
    WARNING = "warning"
    DANGER = "danger"
    CRITICAL = "critical"


def zone_of(percent: float, config: GCConfig) -> Zone:
    """Return the zone that a share of the context window lies in."""
    if percent >= config.critical_percent:
        return Zone.CRITICAL
    if percent >= config.danger_percent:
        return Zone.DANGER
    return Zone.WARNING if percent >= config.warning_percent else Zone.SAFE
