"""Local sessions are found where agents keep them, and told apart by a glance."""

from __future__ import annotations

from pathlib import Path

from ctxgc.insight import find_sessions, limit_for, project_of, session_overview
from tests.wire.transcripts import made

STEPS = made.conversation(turns=3)


def test_sessions_are_found_newest_first_and_subagents_are_not(tmp_path: Path) -> None:
    found = find_sessions(made.place_sessions(tmp_path))
    assert [(each.agent, each.session_id) for each in found] == [
        ("codex", made.SESSION),
        ("claude-code", made.SESSION),
    ]
    assert [project_of(each) for each in found] == [made.PROJECT, made.PROJECT]


def test_a_row_tells_project_model_tokens_and_zone(tmp_path: Path) -> None:
    codex, claude = map(session_overview, find_sessions(made.place_sessions(tmp_path)))
    assert (codex.project, codex.model, codex.context_limit) == (made.PROJECT, "gpt-5", 258_400)
    assert (claude.project, claude.model, claude.context_limit) == (
        made.PROJECT,
        made.MODEL,
        200_000,
    )
    assert (codex.zone, claude.zone) == ("safe", "safe")
    assert codex.tokens is not None
    assert claude.tokens is not None
    assert 3_000 < claude.tokens < 10_000


def test_of_a_long_file_the_newest_request_is_what_counts(tmp_path: Path) -> None:
    env = made.place_sessions(tmp_path)
    path = tmp_path / "claude" / "projects" / "-home-ada-shop" / f"{made.SESSION}.jsonl"
    lines = made.claude_code(made.conversation(turns=60, lines=400))
    made.write_lines(path, lines)
    claude = next(
        session_overview(each) for each in find_sessions(env) if each.agent == "claude-code"
    )
    assert claude.size > 600_000
    usage = lines[-1]["message"]["usage"]
    assert (
        claude.tokens
        == 4 + 40 + usage["cache_read_input_tokens"] + (usage["cache_creation_input_tokens"])
    )


def test_nothing_is_found_in_an_empty_home(tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path), "CODEX_HOME": str(tmp_path)}
    assert find_sessions(env) == []


def test_the_limit_is_that_of_the_file_the_model_or_the_largest_request() -> None:
    assert limit_for("gpt-5", 258_400) == 258_400
    assert limit_for("claude-sonnet-4-20250514") == 200_000
    assert limit_for("claude-opus-5[1m]") == 1_000_000
    assert limit_for("claude-sonnet-4", None, 240_000) == 400_000
    assert limit_for(None) == 200_000
    assert limit_for(None, None, 3_000_000) == 3_000_000
