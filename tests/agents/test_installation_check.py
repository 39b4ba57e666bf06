"""What `ctxgc doctor` hears about installations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.agents import Finding, agent_configs, check, install
from ctxgc.errors import ConfigError


def levels(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.where) for finding in findings]


def test_nothing_installed_is_no_fault(home: Path) -> None:
    assert check() == [
        Finding(
            level="info", where="agents", what="not installed for any agent",
            fix="ctxgc install claude-code",
        )
    ]  # fmt: skip


def test_an_installation_that_works_is_said_to(home: Path) -> None:
    install("claude-code")
    install("codex", scope="project")
    found = check()
    assert [where for _, where in levels(found)] == ["claude-code (user)"] * 2 + [
        "codex (project)"
    ] * 2
    assert {level for level, _ in levels(found)} <= {"ok", "warning"}


def test_hooks_are_tried_where_there_are_any(home: Path) -> None:
    install("cursor")
    install("vscode", scope="project")
    assert check() == [
        Finding(level="ok", where="cursor (user)", what="installed"),
        Finding(level="ok", where="vscode (project)", what="installed"),
    ]


def test_entries_that_were_taken_out_are_missed(home: Path) -> None:
    install("claude-code")
    (home / ".claude/settings.json").write_text("{}", encoding="utf-8")
    (finding,) = check()
    assert finding.level == "error"
    assert "settings.json lacks the entries of ctxgc" in finding.what
    assert finding.fix == "ctxgc install claude-code --user"


def test_a_damaged_file_is_named(home: Path) -> None:
    install("cursor")
    (home / ".cursor/mcp.json").write_text("{", encoding="utf-8")
    (finding,) = check()
    assert (finding.level, "is not JSON" in finding.what) == ("error", True)


def test_a_server_that_cannot_run_is_found_and_not_installed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("cursor")
    monkeypatch.setattr(agent_configs, "find_spec", lambda name: None)
    (finding,) = check()
    assert (finding.level, finding.what) == ("error", agent_configs.NO_SERVER)
    with pytest.raises(ConfigError, match="the package mcp is missing"):
        install("vscode")
    assert [path.name for path in home.iterdir() if path.name.startswith(".v")] == []
