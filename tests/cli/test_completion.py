"""Shell completion, `python -m ctxgc`, and the options of the whole command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import Result

from ctxgc import __version__
from ctxgc.cli import main
from ctxgc.cli.group import SHELLS
from ctxgc.cli.start import COMMANDS
from tests.cli.stash_cases import make_session

Run = Callable[..., Result]
OURS = ("prune", "undo", "diff", "show", "search", "checkpoint", "doctor", "watch", "completion")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_code_for_a_shell_is_what_that_shell_can_read(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_CTXGC_COMPLETE" in done.stdout
    program = shutil.which(shell)
    if program is not None:
        checked = subprocess.run(
            [program, "-n"], input=done.stdout_bytes, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, b"")


def test_commands_complete_by_themselves() -> None:
    asked = {"_CTXGC_COMPLETE": "bash_complete", "COMP_WORDS": "ctxgc checkp", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from ctxgc.cli import main; main(prog_name='ctxgc')"],
        env={**os.environ, **asked}, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.stdout == "plain,checkpoint\n"


def test_an_unknown_shell_is_a_wrong_call(run: Run) -> None:
    assert run("completion", "dos").exit_code == 2


def test_the_package_runs_like_the_script() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxgc", "--version"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"ctxgc, version {__version__}\n")


@pytest.mark.parametrize("name", OURS)
def test_help_has_examples_and_exit_codes(run: Run, name: str) -> None:
    text = run(name, "--help").stdout
    assert "Examples:\n" in text
    assert "Exit codes:" in text
    assert f"ctxgc {name} " in text
    assert "Exit codes: 0 done; 1 an error" in run("--help").stdout


def test_quiet_before_the_command_counts_for_it(run: Run) -> None:
    make_session().close()
    assert run("--quiet", "search", "function_3_30").output == ""
    assert run("--quiet", "stash", "list").output == ""
    assert run("--quiet", "search", "fjord").exit_code == 1


def test_every_command_of_ours_is_in_the_table() -> None:
    assert set(OURS) <= set(COMMANDS)
    assert isinstance(main, click.Group)
