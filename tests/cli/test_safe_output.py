"""No key, password, escape or bidi character reaches a terminal, whichever command prints it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ctxgc.cli import main
from ctxgc.cli.output import shown, write_json
from tests.cli.conftest import Run
from tests.session_files import ClaudeCode, dumped, source

KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
HOSTILE = "\x1b[2J\x9b31m\x7f\u202egnp\u2066"
RAW = set(HOSTILE) - set("[2J31mgnp")

Write = Callable[[str, Any], Path]


def session_with_a_key() -> bytes:
    file = ClaudeCode()
    file.user(f"Deploy with {KEY} {HOSTILE}")
    for turn in range(12):
        command = {"command": f"curl -H 'token: {KEY}' {HOSTILE} {turn % 2}"}
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": command}
        file.block(f"msg_{turn}", call)
        file.result(f"toolu_{turn}", f"{KEY} {HOSTILE}\n{source(turn % 2)}", "")
    file.user("And now?")
    return dumped(file.lines)


@pytest.fixture
def session(project: Path) -> str:
    (project / "s.jsonl").write_bytes(session_with_a_key())
    return "s.jsonl"


@pytest.mark.parametrize("command", ["analyze", "prune"])
def test_json_masks_keys_unless_they_are_asked_for(run: Run, session: str, command: str) -> None:
    masked = run(command, session, "--json").stdout
    assert KEY not in masked
    assert "[secret:github-token]" in masked
    assert KEY in run(command, session, "--json", "--show-secrets").stdout


@pytest.mark.parametrize(
    "command", [("analyze",), ("prune",), ("doctor",), ("check",), ("scan",), ("diff", "s.jsonl"),
                ("history",), ("trace", "x")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_no_control_character_of_a_session_is_printed(
    run: Run, session: str, command: tuple[str, ...], form: tuple[str, ...]
) -> None:
    done = run(*command, session, *form)
    assert RAW.isdisjoint(done.output)
    assert KEY not in done.output


@pytest.mark.parametrize("store", ["postgresql://u:pw@127.0.0.1:1/x", "postgresql://u:p@w@127.0.0.1:1/x",
                                   "postgresql://127.0.0.1:1/x?user=u&password=pw"])  # fmt: skip
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_doctor_never_prints_the_password_of_a_store(
    run: Run, store: str, form: tuple[str, ...]
) -> None:
    said = run("doctor", "--store", store, *form).output
    assert "127.0.0.1:1/x" in said
    assert "pw" not in said
    assert "p@w" not in said


@pytest.mark.parametrize("arguments", [
    (f"analy{HOSTILE}",), (f"--{HOSTILE}",), ("analyze", f"no{HOSTILE}.jsonl"),
    ("analyze", f"no{HOSTILE}.jsonl", "--json"), ("show", HOSTILE), ("prune", "x", f"--{HOSTILE}"),
    ("sessions", "--limit", HOSTILE), ("completion", HOSTILE), ("diff", HOSTILE, HOSTILE),
])  # fmt: skip
@pytest.mark.usefixtures("project")
def test_errors_quote_what_was_typed_without_its_control_characters(
    arguments: tuple[str, ...],
) -> None:
    done = CliRunner().invoke(main, list(arguments), color=True)
    assert done.exit_code != 0
    assert done.output
    assert RAW.isdisjoint(done.output.replace("\x1b[31merror:\x1b[0m", ""))


def test_an_error_about_a_store_has_no_password(run: Run) -> None:
    said = run("stash", "list", "--store", "postgresql://u:hunter2@127.0.0.1:1/x").output
    assert "hunter2" not in said
    assert "error:" in said


def test_json_is_the_same_data_however_it_is_escaped() -> None:
    value = {"a": f"x{HOSTILE}\ud800 漢字\U000e0001\n", "n": [1, 2.5, None, True]}

    @click.command()
    def told() -> None:
        write_json(value)

    said = CliRunner().invoke(told).stdout
    assert json.loads(said) == value
    assert RAW.isdisjoint(said)
    assert "漢字" in said


def test_a_text_to_show_keeps_its_words() -> None:
    assert shown("plain words, 漢字, a/b.py") == "plain words, 漢字, a/b.py"
    assert shown(f"key {KEY} at postgres://me:x@host/db") == (
        "key [secret:github-token] at postgres://me@host/db"
    )
