"""Environment variables: names, parsing, precedence, mistakes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from ctxgc.config import DEFAULTS, GCConfig, SessionSettings, load_config
from ctxgc.config.environment import unknown_variables
from ctxgc.errors import ConfigError
from tests.requirements import requirement


@requirement("S2.environment.threshold", "S3.config.threshold-percent-env")
def test_jaato_gc_threshold_sets_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_GC_THRESHOLD", "72.5")
    assert GCConfig() == GCConfig(threshold_percent=72.5)


@requirement("S2.environment.target")
def test_jaato_gc_target_sets_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_GC_TARGET", "41")
    assert GCConfig().target_percent == 41.0


@requirement("S2.environment.pressure")
def test_jaato_gc_pressure_sets_the_pressure_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAATO_GC_PRESSURE", "none")
    assert GCConfig().pressure_percent is None


def test_what_code_passes_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXGC_THRESHOLD_PERCENT", "70")
    monkeypatch.setenv("CTXGC_MAX_TURNS", "12")
    config = GCConfig(threshold_percent=75)
    assert (config.threshold_percent, config.max_turns) == (75.0, 12)


def test_our_name_wins_over_its_aliases() -> None:
    env = {"JAATO_GC_THRESHOLD": "71", "JAATO_GC_THRESHOLD_PERCENT": "72"}
    assert load_config(env=env).threshold_percent == 72.0
    assert load_config(env={**env, "CTXGC_THRESHOLD_PERCENT": "73"}).threshold_percent == 73.0


def test_a_stored_configuration_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = GCConfig().to_dict()
    monkeypatch.setenv("CTXGC_MAX_TURNS", "12")
    assert GCConfig.from_dict(stored).max_turns is None
    assert GCConfig.from_dict({}).max_turns is None


@pytest.mark.parametrize(
    ("name", "raw", "key", "value"),
    [
        ("CTXGC_AUTO_TRIGGER", "off", "auto_trigger", False),
        ("CTXGC_AUTO_TRIGGER", "1", "auto_trigger", True),
        ("CTXGC_NOTIFY_ON_GC", "No", "notify_on_gc", False),
        ("CTXGC_MAX_TURNS", "null", "max_turns", None),
        ("CTXGC_PINNED_TURN_INDICES", "0, 4,7", "pinned_turn_indices", (0, 4, 7)),
        ("CTXGC_PINNED_TURN_INDICES", "[2]", "pinned_turn_indices", (2,)),
        ("CTXGC_PLUGIN_CONFIG", '{"summarizer": "extractive"}', "plugin_config", None),
        ("CTXGC_SCORE_WEIGHTS", '{"recency": 0.5}', "score_weights", {"recency": 0.5}),
        ("CTXGC_NOTIFICATION_TEMPLATE", "off", "notification_template", "off"),
        ("JAATO_GC_PRESERVE_RECENT_TURNS", " 9 ", "preserve_recent_turns", 9),
        ("CTXGC_BATCH", "", "batch", 20),
    ],
)
def test_each_kind_of_value_is_parsed(name: str, raw: str, key: str, value: Any) -> None:
    expected = {"summarizer": "extractive"} if key == "plugin_config" else value
    assert getattr(load_config(env={name: raw}), key) == expected


@pytest.mark.parametrize("key", sorted(set(DEFAULTS) - {"notification_template"}))
def test_every_key_has_a_variable_that_is_checked(key: str) -> None:
    with pytest.raises(ConfigError, match=f"CTXGC_{key.upper()}"):
        load_config(env={f"CTXGC_{key.upper()}": "{"})


def test_a_malformed_value_names_its_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(env={"JAATO_GC_TARGET": "sixty"})
    assert caught.value.details == {"key": "target_percent", "variable": "JAATO_GC_TARGET"}
    assert str(caught.value) == (
        "environment variable JAATO_GC_TARGET must be a number, got a text "
        "(correct or unset JAATO_GC_TARGET)"
    )


def test_a_malformed_secret_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(env={"CTXGC_PLUGIN_CONFIG": '{"api_key": "hunter2"'})
    assert "hunter2" not in f"{caught.value}{caught.value.details}"


def test_variables_of_others_are_only_reported() -> None:
    env = {"CTXGC_TRESHOLD_PERCENT": "5", "JAATO_GC_QUUX": "y", "HOME": "/"}
    assert load_config(env=env) == GCConfig()
    assert unknown_variables((GCConfig, SessionSettings), env) == {
        "CTXGC_TRESHOLD_PERCENT": "CTXGC_THRESHOLD_PERCENT",
        "JAATO_GC_QUUX": None,
    }


def test_session_settings_come_from_their_variables() -> None:
    env = {
        "CTXGC_PLUGIN": "gc_none",
        "CTXGC_STORE": "postgresql://me:hunter2@host/db",
        "CTXGC_CONTEXT_LIMIT": "128000",
        "CTXGC_PRICES": "none",
    }
    settings = SessionSettings.from_env(env)
    assert settings == SessionSettings(
        plugin="gc_none",
        store="postgresql://me:hunter2@host/db",
        context_limit=128_000,
        prices="none",
    )
    assert "hunter2" not in repr(settings)


def test_session_settings_are_none_where_nothing_is_set() -> None:
    assert SessionSettings.from_env({}) == SessionSettings()


def test_a_wrong_context_limit_names_its_variable() -> None:
    with pytest.raises(ConfigError, match="CTXGC_CONTEXT_LIMIT"):
        SessionSettings.from_env({"CTXGC_CONTEXT_LIMIT": "0"})


def test_importing_reads_no_environment() -> None:
    program = (
        "import os; os.environ['JAATO_GC_TARGET'] = 'sixty'; import ctxgc.config as c; "
        "del os.environ['JAATO_GC_TARGET']; print(c.GCConfig().target_percent)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "60.0\n"
