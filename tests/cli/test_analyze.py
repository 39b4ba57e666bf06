"""`ctxgc analyze` on transcripts of every format: golden reports, JSON, the page, errors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ctxgc.insight import SCHEMA
from tests.wire.transcripts import made

Run = Callable[..., Result]

GOLDEN = Path(__file__).parent / "golden"
STEPS = made.conversation(turns=12, lines=40)
CASES = {
    "claude_code": lambda: made.claude_code(
        STEPS, compact_after=8, subagent=True, cache_break_at=22
    ),
    "codex": lambda: made.codex(STEPS, compact_after=8),
    "chat": lambda: made.chat(STEPS),
}


@pytest.mark.parametrize("name", CASES)
def test_the_report_reads_as_the_golden_one(name: str, run: Run, project: Path) -> None:
    made.write_lines(project / "session.jsonl", CASES[name]())
    done = run("analyze", "session.jsonl", "--top", "4", "--context-limit", "12000")
    assert (done.exit_code, done.stderr) == (0, "")
    golden = GOLDEN / f"analyze_{name}.txt"
    shown = _without_policy(done.stdout)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def _without_policy(report: str) -> str:
    """Leave out what changes with the default policy, which has tests of its own."""
    report = re.sub(r"(?m)^  with collections .*$", "  with collections ...", report)
    report = re.sub(r"to\s+[\d,]+\s+tokens\s+\(\d+%\s+less\)", "to ... (... less)", report)
    return re.sub(r"(?m)^  [\d.]+% (saved|lost) by \d+ collections?$", "  ...% by ...", report)


@pytest.mark.parametrize("name", made.EVERY_FORMAT)
def test_every_format_is_analyzed(name: str, run: Run, project: Path) -> None:
    path = made.write_format(name, project, STEPS)
    done = run("analyze", path.name, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["schema"] == SCHEMA
    assert (len(found["turns"]), found["requests"]) == (12, 48)


def test_the_json_has_the_documented_keys(run: Run, project: Path) -> None:
    made.write_lines(project / "a.jsonl", CASES["claude_code"]())
    found = json.loads(run("analyze", "a.jsonl", "--json").stdout)
    assert set(found) == {
        "schema", "about", "scale", "messages", "tokens", "requests", "window",
        "sources", "tools", "files", "turns", "fill", "zones", "compactions", "garbage", "bill",
        "cache", "damaged", "damage", "prune", "advice", "notes",
    }  # fmt: skip


def test_the_page_is_written_whole_and_loads_nothing(run: Run, project: Path) -> None:
    made.write_lines(project / "a.jsonl", CASES["claude_code"]())
    done = run("analyze", "a.jsonl", "--html", "report.html")
    assert done.exit_code == 0
    assert done.stdout.endswith("The page: report.html\n")
    page = (project / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    for title in ("The window over time", "Garbage", "Bill", "Prompt cache", "What to do next"):
        assert title in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "src=" not in page


def test_text_of_the_session_is_escaped_and_keys_are_masked(run: Run, project: Path) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 8
    messages = [
        {"role": "user", "content": f"<script>alert(1)</script> \x1b[31m {key}"},
        {"role": "assistant", "content": "no"},
    ]
    made.write_lines(project / "a.jsonl", messages)
    done = run("analyze", "a.jsonl", "--html", "report.html")
    page = (project / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "\x1b" not in done.stdout
    assert key not in page
    assert key not in done.stdout


def test_damage_is_shown_with_its_lines(run: Run, project: Path) -> None:
    made.write_lines(project / "a.jsonl", made.chat(STEPS), end=b'{"role": "us')
    done = run("analyze", "a.jsonl")
    assert done.exit_code == 0
    assert "── Damaged lines" in done.stdout
    assert f"line {len(made.chat(STEPS)) + 1}: cut off" in done.stdout


def test_quiet_writes_nothing(run: Run, project: Path) -> None:
    made.write_lines(project / "a.jsonl", made.chat(STEPS))
    done = run("analyze", "a.jsonl", "--quiet", "--html", "page.html")
    assert (done.exit_code, done.output) == (0, "")
    assert (project / "page.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "error: none.jsonl cannot be read: No such file or directory (next: "),
        (["empty.jsonl"], "error: empty.jsonl contains no readable message (next: "),
        (["nosuchid"], "error: there is no file or session 'nosuchid' (next: "),
        (["a.jsonl", "--html", "no/such/page.html"], "error: --html: there is no folder no/such"),
    ],
)
def test_errors_are_one_line_with_a_next_step(
    arguments: list[str], said: str, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(project / "codex"))
    (project / "empty.jsonl").write_bytes(b"")
    made.write_lines(project / "a.jsonl", made.chat(STEPS))
    done = run("analyze", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
