"""The JSON Schema, and the explanation that `ctxgc config check` prints."""

from __future__ import annotations

import json
from pathlib import Path

from ctxgc.config import DEFAULTS, ExplainedKey, config_schema, explain_file


def test_the_schema_describes_every_key_with_its_default() -> None:
    keys = config_schema()["$defs"]["keys"]["properties"]
    plain = json.loads(json.dumps(keys))
    assert {key: schema["default"] for key, schema in plain.items()} == json.loads(
        json.dumps(dict(DEFAULTS))
    )
    assert [key for key, schema in plain.items() if not schema.get("description")] == []


def test_the_schema_closes_both_shapes() -> None:
    nested, flat = config_schema()["anyOf"]
    assert set(nested["properties"]) == {"plugin", "config", "$schema"}
    assert set(flat["properties"]) == {"type", "$schema", *DEFAULTS}
    assert [nested["additionalProperties"], flat["additionalProperties"]] == [False, False]


def test_an_explanation_says_where_each_value_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "gc.json"
    path.write_text('{"type": "none", "batch": 6, "plugin_config": {"api_key": "hunter2"}}')
    said = explain_file(path, env={"JAATO_GC_TARGET": "55"})
    by_key = {line.key: line for line in said.keys}
    assert said.ok
    assert (said.plugin, said.shape, set(by_key)) == ("none", "flat", set(DEFAULTS))
    assert by_key["batch"] == ExplainedKey(
        key="batch",
        value=6,
        origin="file",
        meaning="Most segments moved by one small step (5-20 is wise).",
    )
    assert (by_key["target_percent"].value, by_key["target_percent"].origin) == (
        55.0,
        "JAATO_GC_TARGET",
    )
    assert by_key["max_turns"].origin == "default"
    assert by_key["plugin_config"].value == {"api_key": "***"}


def test_a_file_with_a_mistake_is_explained_not_raised(tmp_path: Path) -> None:
    path = tmp_path / "gc.json"
    path.write_text('{"type": "none", "bach": 6}')
    said = explain_file(path, env={"CTXGC_BACH": "6"})
    assert not said.ok
    assert (said.keys, said.problems, said.warnings) == (
        (),
        ('unknown configuration key "bach" (did you mean "batch"?)',),
        ("CTXGC_BACH sets nothing; did you mean CTXGC_BATCH?",),
    )


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert "cannot read" in explain_file(tmp_path / "gc.json", env={}).problems[0]
