"""What the commands print fits the terminal that they print it in."""

from __future__ import annotations

import json
import os
import time
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
CHECKPOINT = "a checkpoint"
FIT = ("--data", "made.jsonl", "--least-tokens", "0", "--rounds", "1", "--jobs", "1")
LAB = ("lab", "run", "--data", "made.jsonl", "--policy", "never,ctxgc", "--least-tokens", "0")
PRINTED: list[tuple[str, ...]] = [
    ("analyze", FILE),
    ("sessions",),
    ("cost",),
    ("watch", FILE, "--once"),
    ("prune", FILE),
    ("prune", FILE, "-o", "pruned/"),
    ("prune", FILE, "--in-place"),
    ("undo", FILE),
    ("unbrick", FILE),
    ("convert", "claude-code", "codex", FILE, "-o", "converted/"),
    ("diff", FILE, "漢字.jsonl"),
    ("doctor", FILE),
    ("doctor",),
    ("scan", FILE, "漢字.jsonl"),
    ("check", FILE, "漢字.jsonl", "--max-garbage", "0", "--max-cache-breaks", "0"),
    ("history", FILE, "--all"),
    ("trace", "green", FILE),
    ("search", "function_3_30", "--store", STORE),
    ("show", "s-1", "--why", "--store", STORE),
    ("stash", "list", "--store", STORE),
    ("stash", "list", "--session", "work", "--store", STORE),
    ("stash", "search", "function_3_30", "--store", STORE),
    ("stash", "show", "s-1", "--store", STORE),
    ("stash", "gc", "--older-than", "1d", "--store", STORE),
    ("stash", "export", "saved.jsonl", "--force", "--store", STORE),
    (
        "stash",
        "import",
        "saved.jsonl",
        "--store",
        "json:a/folder/with/a/rather/long/name/copy.json",
    ),
    ("stash", "migrate", STORE, "json:a/folder/with/a/rather/long/name/moved.json"),
    ("checkpoint", "list", "--store", STORE),
    ("checkpoint", "make", "--session", "work", "--store", STORE),
    ("checkpoint", "show", CHECKPOINT, "--store", STORE),
    ("checkpoint", "verify", "--store", STORE),
    ("checkpoint", "restore", CHECKPOINT, "--store", STORE),
    ("config", "show"),
    ("config", "check", "gc.json"),
    ("install", "claude-code"),
    ("uninstall", "claude-code"),
    ("plugin-folder", "plugin"),
    ("demo", "--segments", "60"),
    ("mcp", "--print-schema-cost"),
    ("lab", "policies"),
    ("lab", "peers", "list"),
    (*LAB, "--survival"),
    ("lab", "explain", "demo-01", "2"),
    ("lab", "fit", "default", *FIT),
    (
        "lab",
        "ablate",
        "default",
        "--data",
        "made.jsonl",
        "--least-tokens",
        "0",
        "--only",
        "hold",
    ),
]
OTHERS = {
    "completion": "a script for a shell",
    "config schema": "JSON",
    "hook": "an answer for an agent",
    "statusline": "the agent gives it one line",
    "lab judge": "needs a language model",
    "lab peers install": "installs other people's packages",
    "dashboard": "a server",
    "serve": "a server",
    "wrap": "runs an agent",
}
"""Commands that print nothing for a terminal, or cannot be tried here."""
BEFORE: dict[str, list[tuple[str, ...]]] = {
    "undo": [("prune", FILE, "--in-place")],
    "stash import": [("stash", "export", "saved.jsonl", "--force", "--store", STORE)],
    "uninstall": [("install", "claude-code")],
}
"""What must have happened before a command has something to say."""


def _is_call(words: tuple[str, ...], name: str) -> bool:
    return " ".join(words[: name.count(" ") + 1]) == name


def _leaves(group: click.Group, *names: str) -> list[str]:
    found: list[str] = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        inside = isinstance(command, click.Group)
        found += _leaves(command, *names, name) if inside else [" ".join((*names, name))]
    return found


_TRIED = {name for name in _leaves(main) for words in PRINTED if _is_call(words, name)}
_UNLISTED = [(*name.split(), FILE) for name in _leaves(main) if name not in {*_TRIED, *OTHERS}]
"""Commands that nobody listed are tried with a session."""


@pytest.fixture
def filled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with a session of an agent, a store, and a recorded run."""
    for name, value in made.place_sessions(project / "home").items():
        monkeypatch.setenv(name, value)
    Path(FILE).write_bytes(claude_code())
    wide = claude_code().decode().replace("def ", "漢字の定義 ")
    Path("漢字.jsonl").write_text(wide, encoding="utf-8")
    Path("gc.json").write_text('{"threshold_percent": 75, "plugin": "gc_budget"}', encoding="utf-8")
    make_session().close()
    write_runs(project, count=2, messages=40)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("arguments", [*PRINTED, *_UNLISTED], ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    for said in ("80", "100", "140", None):
        if said is None:
            monkeypatch.delenv("COLUMNS")
        else:
            monkeypatch.setenv("COLUMNS", said)
        _let_rest()
        for before in _happened_before(arguments):
            run(*before)
            _let_rest()
        done = run(*_with_checkpoint(run, arguments))
        assert done.stdout.strip(), done.output
        width = PIPED_WIDTH if said is None else int(said)
        wide = [line for line in done.stdout.splitlines() if display_width(line) > width]
        assert [line for line in wide if not _is_to_be_copied(line)] == [], f"{said} columns"


def _let_rest() -> None:
    """Let the session look as if its agent had ended a minute ago."""
    past = time.time() - 60
    os.utime(FILE, (past, past))


def _happened_before(arguments: tuple[str, ...]) -> list[tuple[str, ...]]:
    return BEFORE.get(" ".join(arguments[:2]), BEFORE.get(arguments[0], []))


def _with_checkpoint(run: Run, arguments: tuple[str, ...]) -> list[str]:
    if CHECKPOINT not in arguments:
        return list(arguments)
    listed = json.loads(run("checkpoint", "list", "--store", STORE, "--json").stdout)
    return [listed[0]["checkpoint_id"] if word == CHECKPOINT else word for word in arguments]


def _is_to_be_copied(line: str) -> bool:
    """Tell whether a line is a command, or a path behind a word or two: those must not be broken."""
    words = line.split()
    return words[0] == "$" or len(words) == 1 or (len(words) <= 3 and "/" in words[-1])


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
