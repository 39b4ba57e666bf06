"""Zones: where they start, and that they are left lower than they are entered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.config import GCConfig
from ctxgc.errors import InputError
from ctxgc.guard import Zone, next_zone, zone_of
from ctxgc.guard.monitor import percent_of
from tests.requirements import requirement


@pytest.mark.parametrize(
    ("percent", "zone"),
    [
        pytest.param(0, Zone.SAFE, marks=requirement("S4.zones.safe")),
        (69.9, Zone.SAFE),
        pytest.param(70, Zone.WARNING, marks=requirement("S4.zones.warning")),
        (84.9, Zone.WARNING),
        pytest.param(85, Zone.DANGER, marks=requirement("S4.zones.danger")),
        (94.9, Zone.DANGER),
        pytest.param(95, Zone.CRITICAL, marks=requirement("S4.zones.critical")),
        (130, Zone.CRITICAL),
    ],
)
def test_zones_start_at_70_85_and_95_percent(percent: float, zone: Zone) -> None:
    assert zone_of(percent, GCConfig()) is zone


def test_the_starts_are_configuration() -> None:
    config = GCConfig(warning_percent=10, danger_percent=20, critical_percent=30)
    assert [zone_of(p, config) for p in (9, 10, 20, 30)] == list(Zone)


@pytest.mark.parametrize(
    ("current", "percent", "after"),
    [
        (Zone.SAFE, 97, Zone.CRITICAL),
        (Zone.CRITICAL, 90, Zone.CRITICAL),
        (Zone.CRITICAL, 89.9, Zone.DANGER),
        (Zone.CRITICAL, 80, Zone.DANGER),
        (Zone.CRITICAL, 79.9, Zone.WARNING),
        (Zone.CRITICAL, 64.9, Zone.SAFE),
        (Zone.DANGER, 94.9, Zone.DANGER),
        (Zone.DANGER, 66, Zone.WARNING),
        (Zone.WARNING, 65, Zone.WARNING),
        (Zone.SAFE, 69, Zone.SAFE),
    ],
)
def test_a_zone_is_left_five_points_below_its_start(
    current: Zone, percent: float, after: Zone
) -> None:
    assert next_zone(current, percent, GCConfig()) is after


@given(st.sampled_from(Zone), st.floats(0, 150))
def test_a_zone_never_lies_below_the_size_and_settles_at_once(
    current: Zone, percent: float
) -> None:
    config = GCConfig()
    after = next_zone(current, percent, config)
    assert after.rank >= zone_of(percent, config).rank
    assert next_zone(after, percent, config) is after


@given(st.integers(1, 10**7), st.sampled_from([70, 85, 95]))
def test_a_share_that_is_a_whole_percentage_is_exact(hundredth: int, percent: int) -> None:
    assert percent_of(hundredth * percent, hundredth * 100) == percent


@pytest.mark.parametrize(
    ("size", "limit", "field"), [(1, 0, "context_limit"), (-1, 5, "context_size")]
)
def test_impossible_sizes_are_refused(size: int, limit: int, field: str) -> None:
    with pytest.raises(InputError, match=field):
        percent_of(size, limit)
