"""`ctxgc lab fit`: constants into a file, with what they were fitted on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from ctxgc.collector import (
    Coefficients,
    WindowFile,
    coefficients,
    window_file,
)
from tests.cli.lab_runs import write_runs

Run = Callable[..., Result]


@pytest.fixture
def data(project: Path) -> Path:
    return write_runs(project, count=5, messages=30)


def fit(run: Run, data: Path, *arguments: str, subject: str = "default") -> Result:
    usual = ("--data", str(data), "--least-tokens", "0", "--rounds", "2", "--every", "2")
    return run("lab", "fit", subject, *usual, *arguments)


def test_the_file_holds_all_presets_and_says_how_one_was_fitted(
    run: Run, data: Path, project: Path
) -> None:
    output = project / "out.json"
    done = fit(run, data, "-o", str(output), "--seed", "5")
    assert done.exit_code == 0, done.output
    made = msgspec.json.decode(output.read_bytes(), type=Coefficients)
    assert made.presets.keys() == coefficients().presets.keys()
    said = made.provenance["default"]
    assert said.startswith(
        "1 runs of made.jsonl, one run in 2, the half to fit, anthropic-5m; seed 5, 2 rounds, 20"
    )
    fitted, _, judged = said.partition("; bill ")[2].partition("; on the 2 that judge: bill ")
    printed = " ".join(done.output.split())
    assert printed.endswith(f"bill {fitted}; on the 2 that judge: bill {judged}")
    assert fitted != judged


def test_the_window_has_a_file_of_its_own(run: Run, data: Path, project: Path) -> None:
    output = project / "out.json"
    done = fit(run, data, "-o", str(output), subject="window")
    assert done.exit_code == 0, done.output
    made = msgspec.json.decode(output.read_bytes(), type=WindowFile)
    assert made.provenance.keys() == {*window_file().provenance, "fit"}
    assert made.provenance["fit"].startswith(
        "1 runs of made.jsonl, one run in 2, the half to fit, anthropic-5m; seed 1"
    )
    assert "non_resident_50" in made.provenance["fit"]


def test_without_a_half_to_judge_the_file_says_so(run: Run, data: Path, project: Path) -> None:
    assert fit(run, data, "--half", "both", "-o", "out.json").exit_code == 0
    made = msgspec.json.decode((project / "out.json").read_bytes(), type=Coefficients)
    assert made.provenance["default"].endswith("; no runs were left to judge them")


def test_the_same_seed_reaches_the_same_whatever_the_jobs(run: Run, data: Path) -> None:
    said = {fit(run, data, "--jobs", jobs).output for jobs in ("1", "2")}
    assert len(said) == 1
    assert "round    0" in said.pop()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sheet", "free"), "known: anthropic-1h, anthropic-5m, "),
        (("-o", "missing/out.json"), "there is no folder 'missing'"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_played(
    run: Run, data: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = fit(run, data, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_data_that_holds_no_runs_is_named(run: Run, project: Path) -> None:
    empty = project / "empty"
    empty.mkdir()
    done = run("lab", "fit", "default", "--data", str(empty))
    assert done.exit_code != 0
    assert "no runs at" in done.output


def test_an_unknown_preset_is_refused(run: Run, data: Path) -> None:
    done = run("lab", "fit", "frugal", "--data", str(data))
    assert done.exit_code == 2
    assert "'careful'" in done.output
