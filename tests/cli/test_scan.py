"""`ctxgc scan` finds secrets, `ctxgc check` fails on budgets."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Run
from tests.session_files import ClaudeCode, claude_code, dumped

KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


def leaky() -> bytes:
    file = ClaudeCode()
    file.user("Deploy it.")
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "env"}}
    file.block("msg_1", call)
    file.result("toolu_1", f"TOKEN={KEY}", f"TOKEN={KEY}")
    return dumped(file.lines)


@pytest.fixture(autouse=True)
def homes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(project / "codex"))


def test_a_secret_is_found_in_any_transcript_and_never_printed(run: Run, project: Path) -> None:
    folder = project / "claude" / "projects" / "-repo"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_bytes(leaky())
    (folder / "clean.jsonl").write_bytes(claude_code())
    said = run("scan")
    assert said.exit_code == 1
    assert "1 different secret in 1 of 2 transcripts" in said.output
    told = json.loads(run("scan", "--json").output)
    assert [(Path(x["path"]).name, x["line"], x["rule"]) for x in told["secrets"]] == [
        ("agent-1.jsonl", 3, "github-token")
    ]
    assert KEY not in said.output + json.dumps(told)


def test_a_clean_session_has_no_secret(run: Run, project: Path) -> None:
    (project / "clean.jsonl").write_bytes(claude_code())
    said = run("scan", "clean.jsonl")
    assert (said.exit_code, said.output) == (0, "ok: no secret in 1 transcript\n")


def test_a_session_within_its_budgets_passes(run: Run, project: Path) -> None:
    (project / "clean.jsonl").write_bytes(claude_code())
    assert run("check", "clean.jsonl", "--max-garbage", "100").exit_code == 0


def test_a_budget_that_is_not_kept_fails_and_is_reported_for_machines(
    run: Run, project: Path
) -> None:
    lines = leaky().splitlines(keepends=True)
    (project / "bad.jsonl").write_bytes(b"".join([lines[0], lines[2]]))
    said = run("check", "bad.jsonl", "--junit", "out.xml", "--sarif", "out.sarif")
    assert said.exit_code == 1
    assert "failed: bad.jsonl: secrets 1, allowed 0" in said.output
    assert "failed: bad.jsonl: invalid 1, allowed 0" in said.output
    suite = ET.parse(project / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    sarif = json.loads((project / "out.sarif").read_text(encoding="utf-8"))
    assert {x["ruleId"] for x in sarif["runs"][0]["results"]} == {"secrets", "invalid"}
    assert KEY not in (project / "out.xml").read_text(encoding="utf-8") + json.dumps(sarif)
    assert run("check", "bad.jsonl", "--max-secrets", "1", "--max-invalid", "1").exit_code == 0


def test_more_garbage_than_allowed_fails(run: Run, project: Path) -> None:
    (project / "s.jsonl").write_bytes(claude_code())
    found = json.loads(run("check", "s.jsonl", "--max-garbage", "0", "--json").output)
    garbage = next(x for x in found["s.jsonl"] if x["rule"] == "garbage")
    shown = json.loads(run("analyze", "s.jsonl", "--json").output)["garbage"]["percent"]
    assert garbage["found"] == shown > 0
    assert garbage["kept"] is False
