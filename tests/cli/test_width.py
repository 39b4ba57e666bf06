"""What the commands print fits the terminal that they print it in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from ctxgc.cli.group import COMMANDS, main
from ctxgc.drawing import PIPED_WIDTH, display_width
from tests.cli.lab_runs import write_runs
from tests.cli.stash_cases import STORE, make_session
from tests.session_files import claude_code
from tests.wire.transcripts import made

Run = Callable[..., Result]

FILE = "5f8cbb78-38d3-47e9-9504-baa93bb166c9.jsonl"
LAB = ("lab", "run", "--data", "made.jsonl", "--policy", "never,ctxgc", "--least-tokens", "0")
PRINTED: list[tuple[str, ...]] = [
    ("analyze", FILE),
    ("sessions",),
    ("watch", FILE, "--once"),
    ("prune", FILE),
    ("prune", FILE, "-o", "pruned/"),
    ("diff", FILE, "漢字.jsonl"),
    ("stash", "list", "--store", STORE),
    ("stash", "list", "--session", "work", "--store", STORE),
    ("stash", "gc", "--older-than", "1d", "--store", STORE),
    ("search", "function_3_30", "--store", STORE),
    ("show", "s-1", "--why", "--store", STORE),
    ("checkpoint", "list", "--store", STORE),
    ("config", "show"),
    ("check", FILE, "漢字.jsonl", "--max-garbage", "0", "--max-cache-breaks", "0"),
    ("demo", "--segments", "60"),
    ("mcp", "--print-schema-cost"),
    ("lab", "policies"),
    ("lab", "peers", "list"),
    (*LAB, "--survival"),
    ("lab", "explain", "demo-01", "2"),
]


@pytest.fixture
def filled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with a session of an agent, a store, and a recorded run."""
    for name, value in made.place_sessions(project / "home").items():
        monkeypatch.setenv(name, value)
    Path(FILE).write_bytes(claude_code())
    wide = claude_code().decode().replace("def ", "漢字の定義 ")
    Path("漢字.jsonl").write_text(wide, encoding="utf-8")
    make_session().close()
    write_runs(project, count=2, messages=40)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("arguments", PRINTED, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    for said in ("80", "100", "140", None):
        if said is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", said)
        done = run(*arguments)
        assert done.stdout.count("\n") > 1, done.output
        width = PIPED_WIDTH if said is None else int(said)
        wide = [line for line in done.stdout.splitlines() if display_width(line) > width]
        assert [line for line in wide if not _is_to_be_copied(line)] == [], f"{said} columns"


def _is_to_be_copied(line: str) -> bool:
    """Tell whether a line is a command or a single word, such as a path, which must not be broken."""
    return line.strip().startswith("$ ") or len(line.split()) == 1


def _every_help(command: click.Command, *names: str) -> list[tuple[str, ...]]:
    inside = command.commands.items() if isinstance(command, click.Group) else ()
    return [names, *(path for name, each in inside for path in _every_help(each, *names, name))]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_fits_80_columns(run: Run, name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for names in _every_help(command, name):
        shown = run(*names, "--help").stdout.splitlines()
        assert [line for line in shown if display_width(line) > 80] == [], names
