"""ContextMonitor: one alert per entry, never a lower one in a fuller zone, armed again on leaving."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.config import GCConfig
from ctxgc.errors import InputError
from ctxgc.guard import Alert, ContextMonitor, Zone
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def levels(*percents: float, monitor: ContextMonitor | None = None) -> list[str | None]:
    """The levels of the alerts that these sizes cause, one after the other."""
    monitor = monitor or ContextMonitor()
    alerts = [monitor.check_and_alert(round(percent * 10), 1_000) for percent in percents]
    return [alert.level if alert else None for alert in alerts]


@requirement("S4.monitor.warning", "S4.monitor.danger", "S4.monitor.critical")
def test_each_level_alerts_once_on_the_way_up() -> None:
    sizes = (69.9, 70, 71, 85, 86, 95, 96)
    assert levels(*sizes) == [None, "WARNING", None, "DANGER", None, "CRITICAL", None]


def test_no_lower_alert_follows_in_a_fuller_zone() -> None:
    """S4 sent DANGER and then WARNING at 97% because CRITICAL had been sent."""
    assert levels(97, 97, 97, 97) == ["CRITICAL", None, None, None]


def test_an_alert_is_armed_again_when_its_zone_is_left() -> None:
    assert levels(96, 40, 96) == ["CRITICAL", None, "CRITICAL"]
    assert levels(86, 79, 86, 60, 71) == ["DANGER", None, "DANGER", None, "WARNING"]


def test_swaying_around_a_start_does_not_alert_again() -> None:
    assert levels(70, 69, 70, 66, 71) == ["WARNING", None, None, None, None]


def test_the_way_down_is_silent() -> None:
    assert levels(96, 86, 84, 72, 10) == ["CRITICAL", None, None, None, None]


def test_warnings_sent_names_the_alerts_that_are_not_armed() -> None:
    monitor = ContextMonitor()
    seen = []
    for percent in (72, 96, 86, 66, 10):
        levels(percent, monitor=monitor)
        seen.append(list(monitor.warnings_sent))
    assert seen == [["warning"], ["warning", "critical"], ["warning"], ["warning"], []]


@requirement("S4.monitor.alert")
def test_an_alert_carries_type_level_ratio_and_recommendation() -> None:
    sent: list[Alert] = []
    monitor = ContextMonitor(on_alert=sent.append)
    alert = monitor.check_and_alert(960, 1_000)
    assert alert is not None
    assert sent == [alert]
    assert alert == {
        "type": "CONTEXT_SIZE_ALERT",
        "level": "CRITICAL",
        "ratio": 0.96,
        "recommendation": "Immediate action required - create checkpoint and prune",
    }
    assert json.loads(json.dumps(alert)) == alert
    assert (alert["level"], alert.level, alert.zone) == ("CRITICAL", "CRITICAL", Zone.CRITICAL)
    assert alert.to_dict() == {**alert, "zone": "critical"}
    with pytest.raises(AttributeError, match="Alert has no attribute 'levle'"):
        alert.levle  # noqa: B018 - the lookup is what is tested


@requirement("S4.monitor.recommendations")
def test_each_level_has_its_recommendation_and_unknown_ones_a_general_one() -> None:
    recommend = ContextMonitor().get_recommendation
    assert [recommend(level) for level in ("WARNING", "danger", "CRITICAL", "NOISE")] == [
        "Consider pruning non-essential context soon",
        "Prepare checkpoint and pruning strategy",
        "Immediate action required - create checkpoint and prune",
        "Monitor context size",
    ]


@requirement("S4.monitor.history")
def test_each_check_records_time_size_and_ratio() -> None:
    times = iter([NOW, NOW + timedelta(minutes=1)])
    monitor = ContextMonitor(clock=lambda: next(times))
    levels(10, 75, monitor=monitor)
    assert monitor.history == [
        {"timestamp": NOW, "size": 100, "ratio": 0.1},
        {"timestamp": NOW + timedelta(minutes=1), "size": 750, "ratio": 0.75},
    ]
    assert [(each.ratio, each.zone) for each in monitor.history] == [
        (0.1, Zone.SAFE),
        (0.75, Zone.WARNING),
    ]


def test_the_history_is_bounded() -> None:
    monitor = ContextMonitor(history_limit=3)
    levels(*range(10), monitor=monitor)
    assert [reading.size for reading in monitor.history] == [70, 80, 90]


def test_a_callback_that_raises_stops_neither_the_alert_nor_the_others() -> None:
    sent: list[Alert] = []
    monitor = ContextMonitor(on_alert=lambda alert: 1 / 0)
    monitor.subscribe(sent.append)
    assert levels(96, monitor=monitor) == ["CRITICAL"]
    assert [alert.level for alert in sent] == ["CRITICAL"]


def test_a_subscription_ends_when_asked() -> None:
    sent: list[Alert] = []
    monitor = ContextMonitor()
    end = monitor.subscribe(sent.append)
    end()
    end()
    levels(96, monitor=monitor)
    assert sent == []


def test_a_restarted_monitor_does_not_repeat_the_alert_of_its_zone() -> None:
    assert levels(96, monitor=ContextMonitor(zone=Zone.CRITICAL)) == [None]


def test_impossible_numbers_are_refused_and_nothing_is_recorded() -> None:
    monitor = ContextMonitor()
    with pytest.raises(InputError, match="context_limit"):
        monitor.check_and_alert(5, 0)
    assert monitor.history == []
    with pytest.raises(InputError, match="history_limit"):
        ContextMonitor(history_limit=-1)


def naive_levels(sizes: list[int], config: GCConfig) -> list[str | None]:
    """The judge: each level is a switch with an upper and a lower mark; the highest new one speaks."""
    marks = {
        "WARNING": config.warning_percent,
        "DANGER": config.danger_percent,
        "CRITICAL": config.critical_percent,
    }
    on = dict.fromkeys(marks, False)
    said: list[str | None] = []
    for size in sizes:
        before = dict(on)
        for level, start in marks.items():
            on[level] = size >= start - (config.zone_leave_points if on[level] else 0)
        highest = [level for level in marks if on[level]][-1:]
        said.append(highest[0] if highest and not before[highest[0]] else None)
    return said


@given(st.lists(st.integers(0, 120)), st.sampled_from([0, 1, 5, 20]))
def test_alerts_are_those_of_three_switches_with_two_marks_each(
    sizes: list[int], leave: float
) -> None:
    config = GCConfig(zone_leave_points=leave)
    monitor = ContextMonitor(config)
    alerts = [monitor.check_and_alert(size, 100) for size in sizes]
    assert [alert.level if alert else None for alert in alerts] == naive_levels(sizes, config)
