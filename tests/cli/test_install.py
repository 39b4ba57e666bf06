"""`ctxgc install` and its relatives on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxgc.cli import main
from ctxgc.stores import open_store
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def home(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(project))
    monkeypatch.delenv("XDG_STATE_HOME")
    return project


def test_install_tells_what_it_did_and_what_is_next(run: Run, home: Path) -> None:
    first, second = run("install", "claude-code"), run("install", "claude-code")
    assert first.output.splitlines() == [
        f"created {home}/.claude.json",
        f"created {home}/.claude/settings.json",
        "next: start a new session; /mcp and /hooks show what was added",
    ]
    assert second.output == "claude-code: already installed, nothing to do\n"


def test_a_dry_run_shows_a_diff(run: Run, home: Path) -> None:
    shown = run("install", "cursor", "--project", "--dry-run").output
    assert shown.startswith(f"would create {home}/.cursor/mcp.json\n---")
    assert '+    "ctxgc": {' in shown
    assert list(home.iterdir()) == []


def test_uninstall_tells_what_it_did(run: Run, home: Path) -> None:
    run("install", "codex")
    assert run("uninstall", "codex").output.splitlines() == [
        f"removed {home}/.codex/config.toml",
        f"removed {home}/.codex/hooks.json",
    ]
    assert run("uninstall", "codex").output == "codex: not installed, nothing to do\n"
    assert list(home.iterdir()) == []


def test_the_stash_that_stays_or_goes_is_named(run: Run, home: Path) -> None:
    stash = home / ".local/state/ctxgc/agents/stash.sqlite"
    for agent in ("codex", "cursor"):
        run("install", agent)
    open_store(f"sqlite:{stash}").close()
    assert "moved out" not in run("uninstall", "codex").output
    dry = run("uninstall", "cursor", "--dry-run", "--delete-stash").output.splitlines()
    assert dry[-1] == f"would remove {stash}, with everything that was stashed"
    assert stash.exists()
    kept = f"kept {stash} with what was stashed (--delete-stash deletes it)"
    assert run("uninstall", "cursor").output.splitlines()[-1] == kept
    assert run("uninstall", "cursor").output.splitlines() == [
        "cursor: not installed, nothing to do",
        kept,
    ]
    assert stash.exists()
    last = run("uninstall", "cursor", "--delete-stash").output.splitlines()[-1]
    assert last == f"removed {stash}, with everything that was stashed"
    assert not stash.exists()


def test_a_damaged_file_is_one_line_with_a_next_step(run: Run, home: Path) -> None:
    (home / ".claude.json").write_text("{", encoding="utf-8")
    done = run("install", "claude-code")
    assert done.exit_code == 1
    assert "is not JSON" in done.output
    assert "next: correct it by hand" in done.output


def test_the_plugin_folder_is_written(run: Run, home: Path) -> None:
    assert run("plugin-folder", "plugin").output.splitlines()[0] == (
        f"{home}/plugin/.claude-plugin/plugin.json"
    )


@pytest.mark.parametrize("words", [["hook", "session-start"], ["hook", "nonsense"], ["hook"]])
def test_a_hook_by_hand_says_nothing_and_never_fails(
    words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxgc.agents.hook._read", lambda _: b"no json")
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.output) == (0, "")


def test_the_status_line_is_printed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"context_window": {"context_window_size": 10, "current_usage": {"input_tokens": 9}}}
    printed: list[bytes] = []
    monkeypatch.setattr("ctxgc.agents.hook._read", lambda _: json.dumps(said).encode())
    monkeypatch.setattr("ctxgc.agents.hook._write", lambda _, data: printed.append(data))
    assert CliRunner().invoke(main, ["statusline"]).exit_code == 0
    assert b"danger" in printed[0]


def test_install_says_what_it_left_alone(run: Run, home: Path) -> None:
    settings = home / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"statusLine": {"type": "command", "command": "mine"}}', encoding="utf-8")
    said = run("install", "claude-code").output.splitlines()
    assert said[1:3] == [
        f"changed {settings}",
        "  left alone: statusLine is set to something of yours, and stays",
    ]
