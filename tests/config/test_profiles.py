"""Profiles of subagents and inline configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc.config import GCConfig, Profile, list_profiles, load_profile, parse_inline
from ctxgc.errors import ConfigError
from tests.requirements import requirement

S3_PROFILE = {
    "name": "my-subagent",
    "description": "A specialized subagent",
    "plugins": ["cli", "file_edit"],
    "gc": {
        "type": "hybrid",
        "threshold_percent": 80.0,
        "preserve_recent_turns": 5,
        "notify_on_gc": True,
        "summarize_middle_turns": 10,
    },
}


def write(root: Path, folder: str, name: str, data: object) -> None:
    path = root / folder / "profiles" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


@requirement("S3.profiles.gc-field")
def test_a_profile_carries_its_collector(tmp_path: Path) -> None:
    write(tmp_path, ".jaato", "my-subagent", S3_PROFILE)
    profile = load_profile("my-subagent")
    assert profile.gc is not None
    assert profile == Profile(
        name="my-subagent",
        description="A specialized subagent",
        plugins=("cli", "file_edit"),
        gc=profile.gc,
    )
    assert (profile.gc.plugin, profile.gc.config(env={})) == ("hybrid", GCConfig())


def test_a_profile_without_a_collector_has_none(tmp_path: Path) -> None:
    write(tmp_path, ".ctxgc", "plain", {})
    assert load_profile("plain", tmp_path) == Profile(name="plain")


def test_our_folder_wins_and_both_are_listed(tmp_path: Path) -> None:
    write(tmp_path, ".jaato", "a", {"description": "theirs"})
    write(tmp_path, ".jaato", "b", {})
    write(tmp_path, ".ctxgc", "a", {"description": "ours"})
    assert list_profiles() == ("a", "b")
    assert load_profile("a").description == "ours"


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", ".", "", "/etc/passwd", "a\0", ".x"])
def test_a_name_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a plain name"):
        load_profile(name, tmp_path / ".ctxgc")


def test_an_unknown_profile_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, ".ctxgc", "reviewer", {})
    with pytest.raises(ConfigError, match='did you mean "reviewer"'):
        load_profile("reviewr")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"gcc": {}}, "gcc"),
        ({"plugins": "cli"}, "plugins"),
        ({"gc": []}, "gc"),
        ({"gc": {"treshold_percent": 1}}, "threshold_percent"),
    ],
)
def test_a_mistake_in_a_profile_is_explained(tmp_path: Path, data: object, says: str) -> None:
    write(tmp_path, ".ctxgc", "p", data)
    with pytest.raises(ConfigError, match=says):
        load_profile("p")


@requirement(
    "S3.inline.type-default",
    "S3.inline.threshold-percent-default",
    "S3.inline.preserve-recent-turns-default",
    "S3.inline.notify-on-gc-default",
    "S3.inline.summarize-middle-turns-default",
    "S3.inline.max-turns-default",
    "S3.inline.plugin-config-default",
)
def test_inline_defaults_are_those_of_the_seed() -> None:
    spec = parse_inline({"gc": {}})
    assert spec is not None
    assert (spec.plugin, GCConfig.from_dict(spec.values)) == (
        "truncate",
        GCConfig(summarize_middle_turns=None),
    )


@requirement("S3.inline.low-threshold")
def test_an_inline_threshold_of_five_percent_loads_as_the_seed_writes_it() -> None:
    gc = {"type": "truncate", "threshold_percent": 5.0, "preserve_recent_turns": 3}
    spec = parse_inline({"gc": gc})
    assert spec is not None
    config = spec.config(env={})
    assert (config.threshold_percent, config.target_percent, config.preserve_recent_turns) == (
        5.0,
        3.75,
        3,
    )


def test_inline_without_a_collector_gives_none() -> None:
    assert parse_inline({}) is None


def test_an_unknown_inline_key_is_refused() -> None:
    with pytest.raises(ConfigError, match='"gc"'):
        parse_inline({"gcs": {}})
    with pytest.raises(ConfigError, match="not an object"):
        parse_inline({"gc": "truncate"})
