"""`ctxgc config`: what it shows, what it finds wrong, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from ctxgc.cli import main
from ctxgc.collector import preset
from ctxgc.config import config_schema

CONSTANTS = msgspec.to_builtins(preset("default"))

Run = Callable[..., Result]
Write = Callable[[str, Any], Path]


def test_the_schema_is_printed_as_json(run: Run) -> None:
    done = run("config", "schema")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads(json.dumps(config_schema()))


@pytest.mark.usefixtures("wide")
def test_a_sound_file_is_explained_key_by_key(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAATO_GC_TARGET", "55")
    gc = {"type": "hybrid", "threshold_percent": 75.0, "max_turns": None}
    path = write(".jaato/gc.json", gc)
    done = run("config", "check")
    assert done.exit_code == 0
    lines = [line.split(None, 3) for line in done.stdout.splitlines()]
    assert done.stdout.startswith(f"ok: {path} (flat) uses hybrid\n")
    assert lines[1] == ["key", "value", "from", "meaning"]
    assert lines[2] == [
        "threshold_percent", "75.0", "file", "Collect when usage reaches this share.",
    ]  # fmt: skip
    assert lines[3][:3] == ["target_percent", "55.0", "JAATO_GC_TARGET"]
    assert lines[4][:3] == ["pressure_percent", "90.0", "default"]
    found = json.loads(run("config", "check", "--json").stdout)
    assert (found["ok"], found["plugin"], found["shape"]) == (True, "hybrid", "flat")
    assert found["settings"][0] == {
        "key": "threshold_percent",
        "value": 75.0,
        "source": "file",
        "meaning": "Collect when usage reaches this share.",
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"treshold_percent": 5}, 'did you mean "threshold_percent"?'),
        ({"threshold_percent": 500}, "threshold_percent must be at most 100.0, got 500"),
        ({"type": "hybird"}, 'unknown GC plugin "hybird" (did you mean "gc_hybrid"?)'),
        ({"plugin": "gc_budget", "threshold_percent": 5}, "at the wrong level"),
        ({"type": "hybrid", "plugin_config": {"summariser": 1}}, 'did you mean "summarizer"?'),
        ("{", "holds no JSON object"),
        (
            {"plugin_config": {"preset": "leen"}},
            '"preset" of gc_mark_sweep cannot be "leen" (use one of default, lean, careful, proven, off)',
        ),
        ({"score_profile": "s2"}, "(use one of default, s0, s1, points)"),
        (
            {"plugin_config": {"constants": {"hold": "long"}}},
            "constants of gc_mark_sweep: Expected `int`, got `str` - at `$.hold`",
        ),
        ({"plugin_config": {"constants": {**CONSTANTS, "hold": -1}}}, "`int` >= 0 - at `$.hold`"),
        (
            {"plugin_config": {"preset": "off", "constants": {**CONSTANTS, "holdd": 1}}},
            "unknown field `holdd` (the constants are trims_calls, thin_numbers, ",
        ),
        (
            {"plugin_config": {"constants": {**CONSTANTS, "shares": {"lazy": [0.2, 0.1]}}}},
            "`shares` has lazy, which no result is",
        ),
    ],
)
def test_a_mistake_is_named_and_the_exit_code_is_1(
    run: Run, write: Write, content: Any, says: str
) -> None:
    path = write("gc.json", content)
    done = run("config", "check", str(path))
    assert done.exit_code == 1
    assert done.stdout.startswith(f"mistake: {path}: ")
    assert says in done.stdout
    quiet = run("config", "check", str(path), "--quiet")
    assert (quiet.exit_code, quiet.output) == (1, "")
    assert json.loads(run("config", "check", str(path), "--json").stdout)["ok"] is False


def test_all_mistakes_are_named_at_once_the_plugin_too(run: Run, write: Write) -> None:
    path = write("gc.json", {"type": "hybird", "treshold_percent": 75})
    problems = [
        'unknown configuration key "treshold_percent" (did you mean "threshold_percent"?)',
        'unknown GC plugin "hybird" (did you mean "gc_hybrid"?)',
    ]
    done = run("config", "check", str(path))
    lines = [f"mistake: {path}: {problem}" for problem in problems]
    assert (done.exit_code, done.stdout.splitlines()) == (1, lines)
    assert json.loads(run("config", "check", str(path), "--json").stdout)["problems"] == problems


def test_the_path_of_a_file_with_a_mistake_stands_once(run: Run, write: Write) -> None:
    for content in ("{", {"plugin": "gc_none", "batch": 5}, {"type": 5}):
        path = write("gc.json", content)
        assert run("config", "check", str(path)).stdout.count(str(path)) == 1


def test_a_variable_that_sets_nothing_is_a_warning(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXGC_TRESHOLD_PERCENT", "5")
    write(".ctxgc/gc.json", {})
    done = run("config", "check")
    assert done.exit_code == 0
    assert done.stdout.startswith(
        "warning: CTXGC_TRESHOLD_PERCENT sets nothing; did you mean CTXGC_THRESHOLD_PERCENT?\n"
    )


def test_a_variable_that_sets_nothing_is_told_without_a_file_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXGC_TRESHOLD_PERCENT", "5")
    said = "CTXGC_TRESHOLD_PERCENT sets nothing; did you mean CTXGC_THRESHOLD_PERCENT?"
    for call, code in (("check", 2), ("show", 0)):
        done = run("config", call)
        assert (done.exit_code, done.stdout.splitlines()[0]) == (code, f"warning: {said}")
    assert json.loads(run("config", "show", "--json").stdout)["warnings"] == [said]


def test_no_file_is_exit_code_2(run: Run) -> None:
    done = run("config", "check")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "error: there is no .ctxgc/gc.json or .jaato/gc.json (next: ctxgc config show)\n"
    )
    assert run("config", "check", "missing.json").exit_code == 2


def test_show_says_where_each_value_comes_from(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown() -> dict[str, tuple[Any, str]]:
        data = json.loads(run("config", "show", "--json").stdout)
        return {each["key"]: (each["value"], each["source"]) for each in data["settings"]}

    before = shown()
    assert before["plugin"] == ("gc_mark_sweep", "default")
    assert before["store"] == ("json:.ctxgc/stash.json", "default")
    assert before["threshold_percent"] == (80.0, "default")
    path = write(".ctxgc/gc.json", {"plugin": "gc_budget", "config": {"max_turns": 9}})
    monkeypatch.setenv("CTXGC_STORE", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("CTXGC_CONTEXT_LIMIT", "1000")
    after = shown()
    assert after["plugin"] == ("gc_budget", "file")
    assert after["store"] == ("postgresql://***@host/db", "CTXGC_STORE")
    assert after["context_limit"] == (1000, "CTXGC_CONTEXT_LIMIT")
    assert after["max_turns"] == (9, "file")
    text = run("config", "show").stdout
    assert text.startswith(f"file: {path}\n")
    assert "hunter2" not in text
    assert run("config", "show", "--quiet").output == ""


def test_colours_are_for_terminals_only(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(".ctxgc/gc.json", {})
    plain = CliRunner().invoke(main, ["config", "check"])
    colourful = CliRunner().invoke(main, ["config", "check"], color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    unwanted = CliRunner().invoke(main, ["config", "check"], color=True)
    assert ["\x1b[" in done.stdout for done in (plain, colourful, unwanted)] == [
        False, True, False,
    ]  # fmt: skip
