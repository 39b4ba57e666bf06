"""`ctxgc sessions`, and SESSION as an argument: a path, an id, or the latest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ctxgc import Session
from ctxgc.cli.session_argument import find_session
from ctxgc.errors import TranscriptError
from tests.wire.transcripts import made

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one session of each agent; Codex's is the newer one."""
    folder = tmp_path / "home"
    for name, value in made.place_sessions(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def test_sessions_are_listed_newest_first(run: Run, home: Path) -> None:
    done = run("sessions")
    assert done.exit_code == 0
    head, codex, claude = done.stdout.splitlines()
    assert head.split() == ["session", "title", "model", "age", "cost", "zone", "left"]
    for row, title, model in ((codex, "Please fix BUG", "gpt-5"), (claude, "Fixing", "sonnet")):
        assert row.startswith(f"  {made.SESSION[:8]}  {title}")
        assert model in row
        assert row.rstrip().endswith("turns")
    assert {len(line) for line in (head, codex, claude)} == {80}


def test_a_wide_terminal_shows_all_that_is_known(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    head = run("sessions").stdout.splitlines()[0]
    assert head.split() == [
        "session", "title", "agent", "project", "model", "age", "size", "turns", "subagents",
        "cost", "tokens", "zone", "left",
    ]  # fmt: skip


def test_a_row_has_the_figures_of_the_other_commands(run: Run, home: Path) -> None:
    for row in json.loads(run("sessions", "--json").stdout):
        whole = json.loads(run("analyze", row["path"], "--json").stdout)
        cost = json.loads(run("cost", row["path"], "--json").stdout)
        assert row["tokens"] == whole["window"]["tokens"]
        assert (row["turns"], row["requests"]) == (len(whole["turns"]), whole["requests"])
        assert row["dollars"] == pytest.approx(cost["total"]["dollars"])


def test_the_list_can_be_limited_and_narrowed(run: Run, home: Path) -> None:
    found = json.loads(run("sessions", "--json", "--limit", "1").stdout)
    assert [each["agent"] for each in found] == ["codex"]
    assert found[0]["context_limit"] == 258_400
    inside = json.loads(run("sessions", "--json", "--project", "/home/ada").stdout)
    assert len(inside) == 2
    assert run("sessions", "--json", "--project", "/home/bob").exit_code == 1


def test_sessions_of_the_store_are_listed_too(run: Run, home: Path) -> None:
    with Session(context_limit=1_000, store="json:artifacts/context_stash.json") as session:
        session.append({"role": "user", "content": "hi"})
    found = json.loads(run("sessions", "--json").stdout)
    assert [each["agent"] for each in found] == ["ctxgc", "codex", "claude-code"]
    assert found[0]["session_id"] == session.session_id


def test_where_nothing_is_found_it_says_so(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project))
    monkeypatch.setenv("CODEX_HOME", str(project))
    done = run("sessions")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "no sessions found here (next: ctxgc analyze FILE)\n"
    with pytest.raises(TranscriptError):
        find_session(None)


def test_a_session_is_found_by_path_prefix_or_as_the_latest(home: Path, project: Path) -> None:
    rollout = next(home.rglob("rollout-*.jsonl"))
    assert find_session(str(rollout)) == rollout
    assert find_session("latest") == rollout
    assert find_session(None) == rollout
    rollout.unlink()
    assert find_session(made.SESSION[:6]).name == f"{made.SESSION}.jsonl"


def test_a_prefix_that_fits_two_is_refused_with_their_names(home: Path) -> None:
    with pytest.raises(TranscriptError) as caught:
        find_session(made.SESSION[:8])
    assert caught.value.message == (
        f"2 sessions begin with '{made.SESSION[:8]}': {made.SESSION}, {made.SESSION}"
    )


def test_the_latest_is_that_of_the_current_project(home: Path, project: Path) -> None:
    older = home / "claude" / "projects" / "here" / "11112222.jsonl"
    older.parent.mkdir()
    made.write_lines(older, made.claude_code(made.conversation(1), project=str(project)))
    os.utime(older, (1_700_000_000, 1_700_000_000))
    assert find_session(None) == older
    assert find_session("latest", only_here=True) == older


def test_analyze_takes_the_latest_session_by_itself(run: Run, home: Path) -> None:
    found = json.loads(run("analyze", "--json").stdout)
    assert found["about"]["kind"] == "codex"


def test_a_session_of_another_project_is_never_shown_silently(run: Run, home: Path) -> None:
    done = run("analyze")
    assert done.exit_code == 0
    assert done.stderr == (
        "warning: no session of this project was found; this is the newest of all, "
        f"of {made.PROJECT}\n"
    )
