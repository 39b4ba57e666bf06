"""`ctxgc convert` writes a session where the other agent looks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.session_files import SESSION, claude_code, codex

Write = Callable[[str, Any], Path]


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))


def test_a_session_of_claude_code_is_found_and_becomes_one_of_codex(
    run: Run, write: Write, project: Path
) -> None:
    here = claude_code().replace(b'"cwd":"/repo"', f'"cwd":"{project}"'.encode()).decode()
    path = write(f"claude/projects/-repo/{SESSION}.jsonl", here)
    told = json.loads(run("convert", "claude-code", "codex", "--json").output)
    made = Path(told["file"])
    assert made.is_relative_to(project / "codex" / "sessions")
    assert made.name.endswith(f"{told['session_id']}.jsonl")
    assert told["resume"] == f"codex resume {told['session_id']}"
    assert path.read_text(encoding="utf-8") == here
    meta = json.loads(made.read_text(encoding="utf-8").splitlines()[0])
    assert (meta["type"], meta["payload"]["id"], meta["payload"]["cwd"]) == (
        "session_meta", told["session_id"], str(project),
    )  # fmt: skip
    assert run("doctor", str(made)).exit_code == 0


def test_a_session_of_codex_becomes_one_of_claude_code_in_this_folder(
    run: Run, write: Write, project: Path
) -> None:
    write("old.jsonl", codex().decode())
    told = json.loads(run("convert", "codex", "claude-code", "old.jsonl", "--json").output)
    dashed = "".join(c if c.isalnum() else "-" for c in str(project))
    place = project / "claude" / "projects" / dashed / f"{told['session_id']}.jsonl"
    assert Path(told["file"]) == place
    assert told["resume"] == f"claude --resume {told['session_id']}"
    assert run("doctor", str(place)).exit_code == 0


def test_a_dry_run_says_what_would_be_carried_over_and_writes_nothing(
    run: Run, write: Write, project: Path
) -> None:
    write("old.jsonl", claude_code().decode())
    before = sorted(project.rglob("*"))
    said = run("convert", "claude-code", "codex", "old.jsonl", "--dry-run")
    assert said.exit_code == 0
    assert "carried over" in said.output
    assert "nothing was written" in said.output
    assert sorted(project.rglob("*")) == before


def test_a_file_that_exists_is_not_overwritten(run: Run, write: Write) -> None:
    write("old.jsonl", claude_code().decode())
    taken = write("new.jsonl", "mine")
    said = run("convert", "claude-code", "codex", "old.jsonl", "-o", "new.jsonl")
    assert said.exit_code == 1
    assert "already exists" in said.output
    assert taken.read_text(encoding="utf-8") == "mine"


def test_one_agent_named_twice_is_a_usage_error(run: Run) -> None:
    said = run("convert", "codex", "codex")
    assert said.exit_code == 2
    assert "name two agents" in said.output


def test_a_session_of_the_wrong_agent_is_refused_with_what_to_do(run: Run, write: Write) -> None:
    write("old.jsonl", codex().decode())
    said = run("convert", "claude-code", "codex", "old.jsonl")
    assert said.exit_code == 1
    assert "is not converted to Codex (next: name a session of Claude Code or Codex" in said.output


def test_a_tombstone_names_a_call_only_if_the_other_agent_can_make_it(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "own"))
    mine, plugins = "mcp__ctxgc__context_recall", "mcp__plugin_ctxgc_ctxgc__context_recall"
    handle = 'handle="h-aaaabbbbccccdddd"'
    said = [
        f"Fix it\n[ctxgc: 90 tokens, idle; {mine}({handle})]\nline 1",
        f"[ctxgc: log moved out, 9 tokens: idle. To see it again: {plugins}({handle})]",
    ]
    lines = [
        {
            "type": "user", "sessionId": SESSION, "uuid": f"u{number}", "cwd": "/repo",
            "parentUuid": f"u{number - 1}" if number else None, "version": "2.1.325",
            "timestamp": f"2026-03-02T09:0{number}:00Z", "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(said)
    ]  # fmt: skip
    write("old.jsonl", "\n".join(map(json.dumps, lines)))

    def converted() -> tuple[str, str]:
        done = run("convert", "claude-code", "codex", "old.jsonl", "-o", "out/")
        assert done.exit_code == 0, done.output
        made = max(Path("out").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return done.stderr, made.read_text(encoding="utf-8")

    warned, text = converted()
    assert "`ctxgc install codex`" in warned
    assert "context_recall" not in text
    assert "[ctxgc: 90 tokens, idle]\\nline 1" in text
    assert "[ctxgc: log moved out, 9 tokens: idle]" in text
    assert run("install", "codex").exit_code == 0
    warned, text = converted()
    assert warned == ""
    assert text.count(f"{mine}({handle})".replace('"', '\\"')) == 2 * text.count("line 1")
    assert plugins not in text
