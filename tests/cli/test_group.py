"""The group of commands: help at once, errors in one line."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from ctxgc import __version__
from ctxgc.cli import main
from ctxgc.cli.start import COMMANDS
from ctxgc.errors import StoreBusyError

Run = Callable[..., Result]


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **environment},
    )


def test_help_lists_every_command_without_importing_one() -> None:
    probe = (
        "import sys; from ctxgc.cli import main; main(['--help'], standalone_mode=False);"
        "print(sorted(m for m in sys.modules if m.startswith(('ctxgc.', 'rich', 'msgspec'))))"
    )
    done = python("-c", probe)
    assert done.stderr == ""
    for name, (_, said) in COMMANDS.items():
        assert f"{name}" in done.stdout
        assert said in done.stdout
    loaded = done.stdout.splitlines()[-1]
    assert loaded == str(
        [
            "ctxgc._lazy",
            "ctxgc._version",
            "ctxgc.cli",
            "ctxgc.cli.group",
            "ctxgc.cli.output",
            "ctxgc.cli.start",
            "ctxgc.errors",
        ]
    )


def test_every_command_of_the_table_can_be_loaded_and_has_help(run: Run) -> None:
    context = click.Context(main)
    for name in COMMANDS:
        assert main.get_command(context, name) is not None
        done = run(name, "--help")
        assert done.exit_code == 0
        assert "Usage:" in done.output


@pytest.mark.parametrize("module", ["ctxgc", "ctxgc.cli"])
def test_the_module_runs_like_the_script(module: str) -> None:
    done = python("-m", module, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ctxgc, version {__version__}\n", "")


def test_a_wrong_command_gets_the_nearest_one(run: Run) -> None:
    done = run("confg")
    assert done.exit_code == 2
    assert "no such command 'confg'. Did you mean 'config'?" in done.output


def test_without_click_it_says_what_to_install(tmp_path: Path) -> None:
    broken = "raise ModuleNotFoundError('No module', name='click')"
    (tmp_path / "click.py").write_text(broken, encoding="utf-8")
    done = python("-m", "ctxgc.cli", "demo", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == ("error: the command line needs click (next: pip install 'ctxgc[cli]')\n")


def test_an_error_of_ours_is_one_line_with_the_next_step(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise StoreBusyError("the store is\nbusy", hint="try again")

    monkeypatch.setattr("ctxgc.cli.config.effective", fail)
    done = run("config", "show")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: the store is busy (next: try again)\n"
    done = run("config", "show", "--json")
    assert (done.exit_code, done.stderr) == (1, "")
    assert json.loads(done.stdout)["error"]["code"] == "store_busy"


def test_an_error_of_the_system_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @click.option("--json", "as_json", is_flag=True)
    def full(as_json: bool) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/mnt/x" if as_json else None)

    monkeypatch.setitem(main.commands, "full", full)
    hint = "(next: check the path and its permissions, and try again)\n"
    for words, where in ((["full"], ""), (["full", "--json"], "/mnt/x: ")):
        done = run(*words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"error: {where}No space left on device {hint}"


def test_the_demo_runs(run: Run, project: Path) -> None:
    done = run("demo", "--segments", "120", "--seed", "3")
    assert done.exit_code == 0
    assert done.stdout.strip()
    assert list(project.iterdir()) == []
    assert run("demo", "--segments", "0").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--nope"], "no such option '--nope' (next: ctxgc --help)"),
        (["check"], "missing argument 'SESSION...' (next: ctxgc check --help)"),
        (["prune", "x", "--preset", "no"], "(next: ctxgc prune --help)"),
        (["analize"], "no such command 'analize'. Did you mean 'analyze'? (next: ctxgc --help)"),
    ],
)
def test_a_mistake_in_the_call_is_one_line_that_says_what_to_do(
    run: Run, arguments: list[str], says: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith(f"{says}\n")
    assert done.stderr.count("\n") == 1
