"""ContextMonitor: one alert each time the context enters a fuller zone.

A zone is entered at its start and left `zone_leave_points` below it. An alert is sent once on the way
up and armed again when its zone is left; on the way down there are none.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import utc_now
from ctxgc.errors import InputError

# -- Zones: safe, warning, danger, critical


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


_ALERT_TYPE: Literal["CONTEXT_SIZE_ALERT"] = "CONTEXT_SIZE_ALERT"

_RECOMMENDATIONS: dict[str, str] = {
    "WARNING": "Some content is not essential: prune it soon.",
    "DANGER": "Make a checkpoint and plan what to prune.",
    "CRITICAL": "Act now: make a checkpoint and prune.",
}
_GENERAL_RECOMMENDATION = "Keep an eye on the size of the context."

_log = logging.getLogger("ctxgc")


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """The news that the context entered a fuller zone."""

    level: str
    ratio: float
    recommendation: str
    zone: Zone
    type: Literal["CONTEXT_SIZE_ALERT"] = _ALERT_TYPE

    def to_dict(self) -> dict[str, Any]:
        """Return the alert as JSON values."""
        return dict(msgspec.to_builtins(self))


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the context: when, how many tokens, which share of the limit, in which zone."""

    timestamp: datetime
    size: int
    ratio: float
    zone: Zone


AlertCallback = Callable[[Alert], object]


class ContextMonitor:
    """Watches the size of a context.

    Args:
        config: where the zones start and how far below they are left.
        on_alert: called with every alert; one that raises is logged and does no harm.
        history_limit: how many readings are remembered.
        zone: the zone to start in, so that a restarted process does not repeat an alert.
        clock: gives the present time, for tests and replays.
    """

    def __init__(
        self,
        config: GCConfig | None = None,
        on_alert: AlertCallback | None = None,
        history_limit: int = 1000,
        *,
        zone: Zone = Zone.SAFE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if history_limit < 0:
            raise InputError(
                f"history_limit cannot be {history_limit}",
                hint="zero or more",
                field="history_limit",
            )
        self.config = config if config is not None else GCConfig()
        self.zone = zone
        self.warnings_sent: list[str] = []
        self._readings: deque[Reading] = deque(maxlen=history_limit)
        self._callbacks: list[AlertCallback] = [] if on_alert is None else [on_alert]
        self._clock = clock

    @property
    def history(self) -> list[Reading]:
        """The latest readings, oldest first."""
        return list(self._readings)

    def subscribe(self, callback: AlertCallback) -> Callable[[], None]:
        """Call back for every alert from now on; return what ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def check_and_alert(self, context_size: int, context_limit: int) -> Alert | None:
        """Take a reading, and return and send an alert if a fuller zone was entered by it.

        Raises:
            InputError: the size is below zero, or the limit not above it; nothing was recorded.
        """
        percent = percent_of(context_size, context_limit)
        before, self.zone = self.zone, next_zone(self.zone, percent, self.config)
        ratio = context_size / context_limit
        self._readings.append(
            Reading(timestamp=self._clock(), size=context_size, ratio=ratio, zone=self.zone)
        )
        self._arm_again()
        if self.zone.rank <= before.rank:
            return None
        self.warnings_sent.append(self.zone.value)
        return self.send_alert(self.zone.upper(), ratio)

    def send_alert(self, level: str, ratio: float) -> Alert:
        """Send an alert to all listeners, and return it."""
        alert = Alert(
            level=level, ratio=ratio, recommendation=self.get_recommendation(level), zone=self.zone
        )
        for callback in tuple(self._callbacks):
            try:
                callback(alert)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("a callback for context alerts raised")
        return alert

    def get_recommendation(self, level: str) -> str:
        """Return what to do at a level, in any case of letters; a general word for unknown ones."""
        return _RECOMMENDATIONS.get(level.upper(), _GENERAL_RECOMMENDATION)

    def _arm_again(self) -> None:
        self.warnings_sent = [
            name for name in self.warnings_sent if Zone(name).rank <= self.zone.rank
        ]
