"""GCConfig: defaults, checks, copies, what it shows."""

from __future__ import annotations

import copy
import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.config import DEFAULTS, GCConfig
from ctxgc.errors import ConfigError
from tests.requirements import requirement
from tools.requirement_scan import ROOT


@requirement(
    "S2.config.threshold-percent-default",
    "S2.config.target-percent-default",
    "S2.config.pressure-percent-default",
    "S2.config.max-turns-default",
    "S2.config.auto-trigger-default",
    "S2.config.check-before-send-default",
    "S2.config.preserve-recent-turns-default",
    "S2.config.pinned-turn-indices-default",
    "S2.config.plugin-config-default",
    "S3.config.threshold-percent-default",
    "S3.config.max-turns-default",
    "S3.config.auto-trigger-default",
    "S3.config.check-before-send-default",
    "S3.config.preserve-recent-turns-default",
    "S3.config.pinned-turn-indices-default",
)
def test_the_defaults_are_those_of_the_seeds() -> None:
    config = GCConfig()
    seeds = {
        "threshold_percent": 80.0,
        "target_percent": 60.0,
        "pressure_percent": 90.0,
        "max_turns": None,
        "auto_trigger": True,
        "check_before_send": True,
        "preserve_recent_turns": 5,
        "pinned_turn_indices": [],
        "plugin_config": {},
        "notify_on_gc": True,
        "notification_template": None,
        "summarize_middle_turns": 10,
        "recent_messages": 10,
        "recent_user_messages": 3,
        "decision_window_seconds": 3600.0,
        "hard_limit_percent": 90.0,
        "warning_percent": 70.0,
        "danger_percent": 85.0,
        "critical_percent": 95.0,
        "checkpoint_percent": 80.0,
        "checkpoint_interval_seconds": 1800.0,
        "checkpoint_every_tasks": 5,
        "prune_to_percent": 70.0,
    }
    assert {key: config.to_dict()[key] for key in seeds} == seeds


@pytest.mark.parametrize(
    ("values", "key", "says"),
    [
        ({"treshold_percent": 75}, "treshold_percent", '"threshold_percent"'),
        ({"threshold_percent": "high"}, "threshold_percent", "'high'"),
        ({"threshold_percent": 0}, "threshold_percent", "must be above 0.0, got 0"),
        ({"threshold_percent": 101}, "threshold_percent", "must be at most 100.0, got 101"),
        ({"threshold_percent": float("nan")}, "threshold_percent", "got nan"),
        ({"threshold_percent": True}, "threshold_percent", "must be a number, got True"),
        ({"auto_trigger": 1}, "auto_trigger", "must be true or false, got 1"),
        ({"max_turns": 0}, "max_turns", "must be at least 1, got 0"),
        ({"batch": 0}, "batch", "must be at least 1, got 0"),
        ({"pinned_turn_indices": [-1]}, "pinned_turn_indices", "must be at least 0"),
        ({"plugin_config": 3}, "plugin_config", "object"),
        ({"score_profile": "best"}, "score_profile", "best"),
    ],
)
def test_a_wrong_key_or_value_is_named(values: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GCConfig(**values)
    assert caught.value.details["key"] == key
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"target_percent": 70, "threshold_percent": 60}, ["target_percent", "threshold_percent"]),
        (
            {"threshold_percent": 80, "hard_limit_percent": 70},
            ["threshold_percent", "hard_limit_percent"],
        ),
        ({"warning_percent": 90}, ["warning_percent", "danger_percent"]),
        ({"danger_percent": 95}, ["danger_percent", "critical_percent"]),
        ({"zone_leave_points": 70}, ["zone_leave_points", "warning_percent"]),
    ],
)
def test_a_contradiction_names_both_keys(values: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        GCConfig(**values)
    assert caught.value.details["keys"] == keys
    assert all(key in str(caught.value) for key in keys)


def test_an_unset_target_follows_a_low_threshold_down() -> None:
    config = GCConfig(threshold_percent=5.0)
    assert (config.target_percent, config.hard_limit_percent) == (3.75, 90.0)


def test_an_unset_hard_limit_follows_a_high_threshold_up() -> None:
    assert GCConfig(threshold_percent=97).hard_limit_percent == 97.0


def test_unset_limits_follow_a_low_hard_limit_down() -> None:
    config = GCConfig(hard_limit_percent=50)
    limits = (config.soft_limit_percent, config.threshold_percent, config.target_percent)
    assert limits == (50.0, 50.0, 37.5)


@given(
    st.dictionaries(
        st.sampled_from([key for key in DEFAULTS if key.endswith("_percent")]),
        st.floats(0.1, 100),
        max_size=4,
    )
)
def test_any_percentages_give_an_ordered_configuration_or_a_typed_error(
    values: dict[str, float],
) -> None:
    try:
        config = GCConfig.from_dict(values)
    except ConfigError:
        return
    assert config.target_percent <= config.threshold_percent <= config.hard_limit_percent
    assert config.warning_percent < config.danger_percent < config.critical_percent
    assert {key: getattr(config, key) for key in values} == values


@pytest.mark.parametrize(("pressure", "continuous"), [(None, True), (0, True), (90, False)])
def test_no_pressure_mark_means_continuous_mode(pressure: float | None, continuous: bool) -> None:
    assert GCConfig(pressure_percent=pressure).continuous is continuous


def test_a_frozen_configuration_cannot_be_changed() -> None:
    options = {"summarizer": "extractive"}
    config = GCConfig(plugin_config=options, pinned_turn_indices=[1, 2])
    options["summarizer"] = "other"
    with pytest.raises(AttributeError):
        config.batch = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):
        config.plugin_config["summarizer"] = "other"  # type: ignore[index]
    assert (config.plugin_config, config.pinned_turn_indices) == (
        {"summarizer": "extractive"},
        (1, 2),
    )


def test_default_options_are_not_shared_or_changeable() -> None:
    with pytest.raises(TypeError, match="frozen"):
        GCConfig().plugin_config.update(a=1)  # type: ignore[attr-defined]
    assert GCConfig().plugin_config == {}


def test_a_summarizer_callable_passes_through_untouched() -> None:
    config = GCConfig(plugin_config={"summarizer": str.upper})
    assert config.plugin_config["summarizer"] is str.upper
    assert GCConfig.from_dict(config.to_dict()) == config


def test_every_field_survives_the_dictionary_form() -> None:
    config = GCConfig(
        max_turns=7, pressure_percent=None, pinned_turn_indices=[3], plugin_config={"a": [1]}
    )
    plain = json.loads(json.dumps(config.to_dict()))
    assert set(plain) == set(DEFAULTS)
    assert GCConfig.from_dict(plain) == config


def test_it_pickles_and_copies() -> None:
    config = GCConfig(max_turns=7, plugin_config={"a": [1]})
    assert pickle.loads(pickle.dumps(config)) == copy.deepcopy(config) == copy.copy(config)
    assert copy.deepcopy(config) == config


def test_replace_checks_again_and_leaves_the_original() -> None:
    config = GCConfig(target_percent=50)
    assert config.replace(threshold_percent=55) == GCConfig(target_percent=50, threshold_percent=55)
    with pytest.raises(ConfigError, match="threshold_percent"):
        config.replace(threshold_percent=40)
    assert config == GCConfig(target_percent=50)


def test_replace_on_a_default_moves_what_nobody_set() -> None:
    assert GCConfig().replace(threshold_percent=5) == GCConfig(threshold_percent=5)


def test_repr_and_description_mask_secrets() -> None:
    config = GCConfig(
        plugin_config={
            "api_key": "hunter2",
            "nested": {"password": "hunter2", "max_tokens": 9},
            "note": "use sk-abcdefghijkl please",
            "url": "postgresql://me:hunter2@host/db",
            "summarizer": str.upper,
        }
    )
    assert config.describe()["plugin_config"] == {
        "api_key": "***",
        "nested": {"password": "***", "max_tokens": 9},
        "note": "use *** please",
        "url": "postgresql://***@host/db",
        "summarizer": "<str.upper>",
    }
    assert repr(config) == f"GCConfig(plugin_config={config.describe()['plugin_config']!r})"
    json.dumps(config.describe())


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"threshold_percent": "75"}, "write it without quotes"),
        ({"notify_on_gc": "true"}, "write it without quotes"),
        ({"max_turns": "null"}, "write it without quotes"),
        ({"threshold_percent": "175"}, 'correct "threshold_percent"'),
        ({"notify_on_gc": "yes"}, 'correct "notify_on_gc"'),
    ],
)
def test_a_value_in_quotes_is_told_to_lose_them(values: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GCConfig(**values)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("freed {tokens_fred}", '"tokens_freed"'),
        ("freed {tokens_freed.__class__}", "unknown field"),
        ("freed {0}", "unknown field"),
        ("freed {", "format string"),
        ("freed {tokens_freed:>999999999}", "no format"),
    ],
)
def test_a_template_with_a_wrong_field_is_refused_when_it_is_set(template: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        GCConfig(notification_template=template)


def test_the_guide_lists_every_share_of_the_window_with_its_default() -> None:
    guide = (ROOT / "docs" / "guides" / "configuration.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| `(\w+_percent)` \|", guide, re.MULTILINE)
    of_a_segment = {"evacuate_keep_percent", "tombstone_names_percent"}
    config = GCConfig()
    shares = {
        name: getattr(config, name)
        for name in config.__struct_fields__
        if name.endswith("_percent") and name not in of_a_segment
    }
    assert {name: float(percent) for percent, name in listed} == shares
    assert [int(percent) for percent, _ in listed] == sorted(int(p) for p, _ in listed)
