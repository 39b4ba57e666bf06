"""Experiments: what is asked for, checked before anything is played."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ctxgc.errors import ConfigError, InputError
from ctxgc.lab import Experiment, run_experiment
from tests.lab.builders import answer, user


def folder(tmp_path: Path, *names: str) -> Path:
    for name in names:
        said = {"id": name, "messages": [user(f"begin {name}"), answer("done")]}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(said), "utf-8")
    return tmp_path


def test_an_experiment_reports_on_what_it_played(tmp_path: Path) -> None:
    data = folder(tmp_path, "one", "two", "three")
    found = run_experiment(
        Experiment(policies=("never", "never"), data=data, least_tokens=0, most_runs=2)
    )
    assert [result.run for result in found.results] == ["one", "three"]
    assert (found.source, found.regime) == ("one.jsonl, three.jsonl, two.jsonl", "cost")
    assert (found.sheet.name, found.runs, [row.policy for row in found.rows]) == (
        "anthropic-5m", 2, ["never"],
    )  # fmt: skip


def test_one_run_in_so_many_is_taken_before_the_first_ones_are(tmp_path: Path) -> None:
    asked = Experiment(policies=(), data=folder(tmp_path, *"abcdefg"), least_tokens=0, every=3)
    assert [run.id for run in asked.runs()] == ["a", "d", "g"]
    assert [run.id for run in msgspec.structs.replace(asked, most_runs=2).runs()] == ["a", "d"]
    assert asked.source == "7 files, a.jsonl to g.jsonl, one run in 3"


def test_each_run_is_in_one_half_whatever_else_is_played(tmp_path: Path) -> None:
    data = folder(tmp_path, *"abcdefghij")
    for every in (1, 2):
        asked = Experiment(policies=(), data=data, least_tokens=0, every=every)
        fit = msgspec.structs.replace(asked, half="fit")
        judge = fit.other_half()
        assert judge is not None
        halves = [{run.id for run in half.runs()} for half in (fit, judge)]
        assert halves[0] | halves[1] == {run.id for run in asked.runs()}
        assert not halves[0] & halves[1]
        assert all(halves)
        assert judge.other_half() == fit
    assert asked.other_half() is None
    assert fit.source.endswith("one run in 2, the half to fit")


def test_a_report_says_the_same_in_another_folder(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
    reports = [
        run_experiment(
            Experiment(policies=("never",), data=folder(tmp_path / place, "one"), least_tokens=0)
        )
        for place in ("here", "there")
    ]
    assert msgspec.json.encode(reports[0]) == msgspec.json.encode(reports[1])


def test_many_files_are_told_by_their_number(tmp_path: Path) -> None:
    data = folder(tmp_path, *"abcdef")
    assert Experiment(policies=(), data=data).source == "6 files, a.jsonl to f.jsonl"
    assert Experiment(policies=(), data=data, set_name="b").source == "b.jsonl"


@pytest.mark.parametrize(
    "wrong", [{"policies": ("neverr",)}, {"regime": "half"}, {"sheet": "anthropic"}]
)
def test_a_wrong_name_is_refused_with_the_nearest(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as raised:
        msgspec.structs.replace(Experiment(policies=("never",)), **wrong).order()
    assert raised.value.hint


def test_no_run_that_is_long_enough_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run of 8000 tokens"):
        run_experiment(Experiment(policies=("never",), data=folder(tmp_path, "one")))


def test_short_runs_of_the_corpus_are_passed_over_too() -> None:
    every = Experiment(policies=(), least_tokens=0).all_runs()
    long = Experiment(policies=(), least_tokens=20_000).all_runs()
    assert 0 < len(long) < len(every)
    with pytest.raises(InputError, match="no run of 100000000 tokens"):
        Experiment(policies=(), least_tokens=100_000_000).all_runs()
