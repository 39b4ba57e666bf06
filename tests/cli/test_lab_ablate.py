"""`ctxgc lab ablate`: a table for people and for the docs, a file for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ctxgc.cli.lab_fit import markdown_table
from ctxgc.lab import Ablated, Ablation
from tests.cli.lab_runs import write_runs

Run = Callable[..., Result]

FOUND = Ablation(
    version="1",
    subject="default",
    source="made.jsonl",
    regimes=("cost",),
    sheet="openai",
    least_tokens=0,
    every=2,
    runs=3,
    constants={"hold": 6, "guard": 0.05, "a.names": 0.1, "b.names": 0.2},
    reached={"bill": 0.6667, "strict": 0.97, "worst": 1.01},
    rows=[
        Ablated(
            constant="hold", what="off", values={"hold": 1},
            reached={}, difference={"bill": -0.0412, "strict": -0.0123, "worst": 0.0},
        ),
        Ablated(
            constant="hold", what="double", values={"hold": 12},
            reached={}, difference={"bill": 0.02, "strict": 0.0004, "worst": 0.012},
        ),
        Ablated(
            constant="guard", what="off", values={"guard": 1e6},
            reached={}, difference={"bill": 0.0, "strict": 0.0, "worst": 0.0},
        ),
        Ablated(
            constant="all names", what="half", values={"a.names": 0.05, "b.names": 0.1},
            reached={}, difference={"bill": 0.1, "strict": 0.0, "worst": 0.0},
        ),
    ],
)  # fmt: skip


@pytest.fixture
def data(project: Path) -> Path:
    return write_runs(project, count=5, messages=30)


def ablate(run: Run, data: Path, *arguments: str) -> Result:
    usual = ("--data", str(data), "--least-tokens", "0", "--every", "2", "--only", "hold")
    return run("lab", "ablate", "default", *usual, *arguments)


def test_markdown_names_what_was_played_each_change_and_what_moved_nothing() -> None:
    assert markdown_table(FOUND) == (
        "default: 3 runs of made.jsonl; cost, openai.\n\n"
        "| constant | set to | bill | strict | worst |\n"
        "| --- | --- | --: | --: | --: |\n"
        "| as shipped |  | 0.667 | 97.0 | 1.010 |\n"
        "| hold 6 | 1 (off) | -0.041 | -1.2 | 0 |\n"
        "|  | 12 | +0.020 | 0 | +0.012 |\n"
        "| guard 0.05 | off | 0 | 0 | 0 |\n"
        "| all names | half | +0.100 | 0 | 0 |\n\n"
        "Nothing moves by a tenth of a point, nor the bill by a thousandth, with other values of: guard.\n"
    )


@pytest.mark.usefixtures("wide")
def test_the_table_has_a_row_for_each_change(run: Run, data: Path) -> None:
    done = ablate(run, data)
    assert done.exit_code == 0, done.output
    assert (
        "default: 1 runs of made.jsonl, one run in 2, the half to fit; cost, anthropic-5m."
        in done.output
    )
    said = done.output.split()
    assert all(word in said for word in ("shipped", "hold", "(off)", "3", "12"))


def test_the_file_is_the_same_bytes_whatever_the_jobs(run: Run, data: Path, project: Path) -> None:
    made = []
    for jobs in ("1", "2"):
        assert ablate(run, data, "--json", "out.json", "--quiet", "--jobs", jobs).output == ""
        made.append((project / "out.json").read_bytes())
    assert made[0] == made[1]
    found = json.loads(made[0])
    assert [(row["what"], row["values"]) for row in found["rows"]] == [
        ("off", {"hold": 1}), ("half", {"hold": 3}), ("double", {"hold": 12}),
    ]  # fmt: skip


def test_an_unknown_constant_or_no_run_is_one_line(run: Run, data: Path) -> None:
    done = ablate(run, data, "--only", "holt")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert 'did you mean "hold"? known: after_check, after_user, ' in done.output
    done = ablate(run, data, "--sheet", "free")
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "known: anthropic-1h, anthropic-5m, " in done.output
    done = ablate(run, data, "--json", "missing/out.json")
    assert done.exit_code == 2
    assert "there is no folder 'missing'" in done.output
    done = ablate(run, data, "--least-tokens", "10000000")
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "no run of 10000000 tokens in made.jsonl" in done.output
