"""`ctxgc lab run --suite gather`: tables for people, files for programs and for the docs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ctxgc.lab import FAMILIES, TOOLS

Run = Callable[..., Result]
SMALL = (
    "lab", "run", "--suite", "gather", "--window", "16000", "--tool", "shell",
    "--family", "compare", "--policy", "never,ctxgc",
)  # fmt: skip


@pytest.mark.usefixtures("wide")
def test_the_tables_fit_a_screen_and_name_each_policy(run: Run, project: Path) -> None:
    done = run(*SMALL)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Gather and use: 7 scripted tasks, 6 of them with content that")
    assert done.output.count("\nnever ") == done.output.count("\nctxgc ") == 8
    assert max(map(len, done.output.split("\n"))) <= 160


def test_the_files_hold_every_result_and_the_tables(run: Run, project: Path) -> None:
    done = run(*SMALL, "--json", "made.json", "--markdown", "made.md", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    found = json.loads((project / "made.json").read_bytes())
    assert [each["policy"] for each in found["results"]] == ["never", "ctxgc"] * 7
    kinds = [(row["policy"], row["group"]["fits"], row["tasks"]) for row in found["rows"]]
    assert sorted(kinds) == [
        ("ctxgc", "all", 4), ("ctxgc", "needed", 2), ("ctxgc", "nothing", 1),
        ("never", "all", 4), ("never", "needed", 2), ("never", "nothing", 1),
    ]  # fmt: skip
    assert (project / "made.md").read_text("utf-8") == run(*SMALL, "--markdown", "-").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "gather", "--html", "a.html"), "--suite gather does not go with --html"),
        (("--suite", "gather", "--cluster", "local"), "does not go with --cluster"),
        (("--suite", "gather", "--data", "."), "does not go with --data"),
        (("--suite", "gather", "--regime", "window:50%"), "does not go with --regime"),
        (("--suite", "gather", "--policy", "nobody"), "nobody"),
        (("--window", "16000", "--matrix"), "--suite gather is missing for: windows, matrix"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(
    run: Run, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run("lab", "run", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_command_knows_every_family_and_every_tool(run: Run, project: Path) -> None:
    shown = run("lab", "run", "--help").output
    assert [name for name in (*FAMILIES, *TOOLS) if name not in shown] == []
