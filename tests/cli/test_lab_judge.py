"""`ctxgc lab judge`: a table for people, a file for programs, and a plain word where the model is missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result

import ctxgc.lab
from tests.cli.lab_runs import write_runs
from tests.lab.test_judge import Reader

Run = Callable[..., Result]


@pytest.fixture
def data(project: Path) -> Path:
    return write_runs(project, count=2, messages=60)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    made = Reader()

    @contextmanager
    def opened(weights: Path | None, threads: int) -> Iterator[Reader]:
        assert (weights, threads) == (None, 1)
        yield made

    monkeypatch.setattr(ctxgc.lab, "open_model", opened, raising=False)
    return made


def judge(run: Run, data: Path, *arguments: str) -> Result:
    usual = ("--policy", "mask-keep-1", "--least-tokens", "0")
    return run("lab", "judge", "--data", str(data), *usual, *arguments)


@pytest.mark.usefixtures("wide")
def test_the_table_has_a_line_for_each_policy_and_the_files_hold_the_same(
    run: Run, data: Path, project: Path, reader: Reader
) -> None:
    done = judge(run, data, "--memory", "m.jsonl", "--json", "one", "--markdown", "two")
    assert done.exit_code == 0, done.output
    lines = [line.split("  ")[0].strip() for line in done.output.splitlines()]
    assert [n for n in lines if n in ("never", "mask-keep-1", "the last two messages")] == [
        "never", "mask-keep-1", "the last two messages",
    ]  # fmt: skip
    found = json.loads((project / "one").read_bytes())
    assert (found["runs"], found["model"]) == (2, "reader")
    assert (project / "two").read_text("utf-8").count("\n| mask-keep-1 | 2 |") == 1
    assert len((project / "m.jsonl").read_text("utf-8").splitlines()) == len(reader.read)


def test_a_report_written_to_a_dash_is_printed_instead(
    run: Run, data: Path, reader: Reader
) -> None:
    printed = judge(run, data, "--markdown", "-").output
    assert printed.startswith("2 targets (identifier) of 2 runs (made.jsonl; cost), 600 tokens")
    assert printed.endswith(" |\n")


def test_without_the_extra_it_says_what_to_install(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    done = judge(run, data)
    assert done.exit_code == 1
    assert "pip install 'ctxgc[judge]'" in done.output


def test_usage_errors_are_told_before_any_model_is_loaded(run: Run, data: Path) -> None:
    done = run("lab", "judge", "--data", str(data), "--policy", "mask-kep-1")
    assert done.exit_code == 2
    assert "mask-keep-1" in done.output
    assert judge(run, data, "--json", "one", "--markdown", "one").exit_code == 2
