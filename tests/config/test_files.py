"""Configuration files in both shapes, and the order of precedence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.config import GCConfig, GCSpec, find_gc_file, load_config, parse_spec, read_gc_file
from ctxgc.errors import ConfigError
from tests.requirements import requirement

S2_FILE = {
    "plugin": "gc_budget",
    "config": {
        "preserve_recent_turns": 5,
        "target_percent": 60.0,
        "pressure_percent": 90.0,
        "notify_on_gc": True,
    },
}
S3_FILE = {
    "type": "hybrid",
    "threshold_percent": 80.0,
    "preserve_recent_turns": 5,
    "notify_on_gc": True,
    "summarize_middle_turns": 10,
    "max_turns": None,
    "plugin_config": {},
}


def write(path: Path, data: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@requirement("S2.config.file")
def test_the_nested_shape_keeps_its_plugin_and_every_key(tmp_path: Path) -> None:
    path = write(tmp_path / "gc.json", S2_FILE)
    assert read_gc_file(path) == GCSpec(
        plugin="gc_budget", values=S2_FILE["config"], shape="nested", origin=str(path)
    )


@requirement("S3.file.flat-form", "S3.file.null-max-turns")
def test_the_flat_shape_keeps_its_type_and_every_key(tmp_path: Path) -> None:
    path = write(tmp_path / "gc.json", S3_FILE)
    values = {key: value for key, value in S3_FILE.items() if key != "type"}
    spec = read_gc_file(path)
    assert spec == GCSpec(plugin="hybrid", values=values, shape="flat", origin=str(path))
    assert spec.config(env={}).max_turns is None


def test_a_file_without_a_pressure_mark_is_not_continuous(tmp_path: Path) -> None:
    config = read_gc_file(write(tmp_path / "gc.json", S3_FILE)).config(env={})
    assert (config.pressure_percent, config.continuous) == (90.0, False)


def test_every_key_of_the_file_reaches_the_configuration(tmp_path: Path) -> None:
    changed = GCConfig(
        max_turns=9, pressure_percent=None, batch=7, pinned_turn_indices=[1], auto_trigger=False
    )
    path = write(tmp_path / "gc.json", {"plugin": "gc_none", "config": changed.to_dict()})
    assert load_config(path, env={}) == changed


def test_code_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = write(tmp_path / "gc.json", {"type": "truncate", "threshold_percent": 71, "batch": 6})
    env = {"JAATO_GC_THRESHOLD": "72", "CTXGC_MAX_TURNS": "8"}
    assert load_config(path, env, max_turns=9) == GCConfig(
        threshold_percent=72, batch=6, max_turns=9
    )


def test_our_folder_is_searched_before_its_alias(tmp_path: Path) -> None:
    assert find_gc_file() is None
    alias = write(tmp_path / ".jaato" / "gc.json", S3_FILE)
    assert find_gc_file(tmp_path) == alias
    ours = write(tmp_path / ".ctxgc" / "gc.json", S2_FILE)
    assert find_gc_file(tmp_path) == ours
    assert find_gc_file() == ours


def test_without_a_file_the_defaults_hold() -> None:
    assert load_config(env={}) == GCConfig()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"type": "hybrid", "treshold_percent": 70}, 'did you mean "threshold_percent"'),
        ({"plugin": "gc_budget", "config": {"target": 60}}, 'did you mean "target_percent"'),
        ({"plugin": "gc_budget", "threshold_percent": 70}, 'put it in "config"'),
        ({"plugin": "gc_budget", "type": "hybrid"}, "different shapes"),
        ({"type": "hybrid", "config": {}}, "different shapes"),
        ({"plugin": "gc_budget", "confg": {}}, 'did you mean "config"'),
        ({"plugin": "gc_budget", "config": [1]}, "not an object"),
        ({"type": 3}, "name one as a string"),
        ({"type": ""}, "name one as a string"),
        ({"type": "summarize", "summarizer": "extractive"}, 'put it in "plugin_config"'),
        ({"type": "hybrid", "max_turns": "ten"}, "max_turns"),
        ({"type": "hybrid", "target_percent": 90}, "threshold_percent"),
    ],
)
def test_a_mistake_in_a_file_is_explained(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_spec(data, origin="gc.json")


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{'a': 1}"])
def test_what_is_no_json_object_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gc.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"gc\.json holds no JSON object"):
        read_gc_file(path)


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load_config(tmp_path / "nowhere.json")


def test_an_editors_schema_link_and_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "gc.json"
    path.write_text('\ufeff{"$schema": "x", "type": "none"}', encoding="utf-8")
    assert read_gc_file(path).plugin == "none"


def test_a_file_that_names_no_plugin_gets_the_default_one() -> None:
    assert parse_spec({}, origin="gc.json").plugin == "gc_mark_sweep"


def test_a_file_that_is_nested_too_deeply_is_a_mistake_in_it(tmp_path: Path) -> None:
    path = tmp_path / "gc.json"
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000, encoding="utf-8")
    with pytest.raises(ConfigError, match="holds no JSON object"):
        read_gc_file(path)
