"""The JSON Schema, and the explanation that `ctxgc config check` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.config import DEFAULTS, ExplainedKey, config_schema, explain_file, shown


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


@pytest.mark.parametrize(
    ("content", "env", "follows"),
    [
        ({}, {}, {}),
        ({"hard_limit_percent": 75}, {}, {"threshold_percent": (75.0, "hard_limit_percent")}),
        ({"threshold_percent": 95}, {}, {"hard_limit_percent": (95.0, "threshold_percent")}),
        ({}, {"CTXGC_THRESHOLD_PERCENT": "40"}, {"target_percent": (30.0, "threshold_percent")}),
        (
            {"hard_limit_percent": 40, "soft_limit_percent": 20},
            {},
            {
                "threshold_percent": (40.0, "hard_limit_percent"),
                "target_percent": (30.0, "threshold_percent"),
            },
        ),
    ],
)
def test_a_default_that_moved_names_the_key_that_it_follows(
    tmp_path: Path, content: dict[str, Any], env: dict[str, str], follows: dict[str, Any]
) -> None:
    path = tmp_path / "gc.json"
    path.write_text(json.dumps(content))
    said = explain_file(path, env=env).keys
    moved = [line for line in said if line.origin.startswith("follows ")]
    assert {
        line.key: (line.value, line.origin.removeprefix("follows ")) for line in moved
    } == follows
    others = [line for line in said if line not in moved and line.origin == "default"]
    assert [line.key for line in others if line.value != shown(DEFAULTS[line.key])] == []


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


TOLD_AT_ONCE: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"secrets": "hide", "auto_trigger": "yes", "max_turns": -1, "pinned_turn_indices": [1, "x"]},
        [
            'secrets cannot be "hide" (use one of off, mark, mask, refuse)',
            "auto_trigger must be true or false, got 'yes' (correct \"auto_trigger\")",
            'max_turns must be at least 1, got -1 (correct "max_turns")',
            'pinned_turn_indices must be a whole number, got a text (correct "pinned_turn_indices")',
        ],
    ),
    (
        {"bach": 6, "summarizer": "x", "type": ""},
        [
            "the plugin's name is '' (name one as a string)",
            '"summarizer" is a plugin option (put it in "plugin_config")',
            'unknown configuration key "bach" (did you mean "batch"?)',
        ],
    ),
    (
        {"plugin": "gc_none", "batch": 1, "config": {"batch": 0}},
        [
            '"batch" is at the wrong level (put it in "config")',
            'batch must be at least 1, got 0 (correct "batch")',
        ],
    ),
    (
        {"type": "none", "plugin": "gc_none", "batch": 0},
        [
            (
                '"type" and "plugin" belong to different shapes '
                '(use {"plugin", "config"} or a flat object with "type")'
            ),
            'batch must be at least 1, got 0 (correct "batch")',
        ],
    ),
    (
        {"notification_template": "{tokens}", "threshold_percent": 50, "target_percent": 70},
        [
            (
                "target_percent (70) is above threshold_percent (50) "
                "(lower target_percent or raise threshold_percent)"
            ),
            'unknown field in notification_template "tokens" (did you mean "tokens_freed"?)',
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "problems"), TOLD_AT_ONCE)
def test_all_mistakes_of_a_file_are_told_at_once(
    tmp_path: Path, content: dict[str, Any], problems: list[str]
) -> None:
    path = tmp_path / "gc.json"
    path.write_text(json.dumps(content))
    assert list(explain_file(path, env={}).problems) == problems


def test_the_file_and_the_environment_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "gc.json"
    path.write_text('{"batch": 0}')
    assert explain_file(path, env={"CTXGC_BATCH": "x", "CTXGC_AUTO_TRIGGER": "x"}).problems == (
        'batch must be at least 1, got 0 (correct "batch")',
        (
            "environment variable CTXGC_AUTO_TRIGGER must be true or false, got a text "
            "(correct or unset CTXGC_AUTO_TRIGGER)"
        ),
        "environment variable CTXGC_BATCH must be a whole number, got a text (correct or unset CTXGC_BATCH)",
    )


@pytest.mark.parametrize("wrong", [{"threshold_percent": "95"}, {"treshold_percent": 95}])
def test_no_mistake_follows_from_another(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "gc.json"
    path.write_text(json.dumps({**wrong, "target_percent": 90}))
    assert len(explain_file(path, env={}).problems) == 1


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert explain_file(tmp_path / "gc.json", env={}).problems == (
        "cannot be read: No such file or directory (check path and rights)",
    )
