"""`ctxgc cost`: sums of what sessions cost, each of which adds up to the whole."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ctxgc.insight import COST_VIEWS, Spend
from tests.cli.conftest import Run
from tests.insight.test_cost import SONNET, answer, usage

KINDS = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output", "requests")


def calling(line: dict[str, object], *tools: str, prompt: str = "") -> dict[str, object]:
    """Return an answer that calls these tools."""
    said = {"prompt": prompt, "subagent_type": "explorer"} if prompt else {}
    blocks = [
        {"type": "tool_use", "id": f"{name}-{n}", "name": name, "input": said}
        for n, name in enumerate(tools)
    ]
    message = line["message"]
    assert isinstance(message, dict)
    return {**line, "message": {**message, "content": blocks}}


@pytest.fixture
def sessions(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions: one with a subagent in a file of its own, one that copied a request of the other."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(project / "codex"))
    folder = project / "claude" / "projects" / "-repo"
    (folder / "one" / "subagents").mkdir(parents=True)
    first = calling(answer("a", usage(write=1_000, output=100)), "Read", "mcp__hub__find")
    asks = calling(answer("b", usage(read=1_000, output=50)), "Task", prompt="Look around.")
    began = {
        "type": "user", "uuid": "u", "parentUuid": None, "sessionId": "one", "isSidechain": True,
        "message": {"role": "user", "content": "Look around."},
    }  # fmt: skip
    side = answer("c", usage(write=500, output=10), model=SONNET, side=True)
    _write(folder / "one.jsonl", [{**first, "cwd": "/repo"}, asks], "one")
    _write(
        folder / "one" / "subagents" / "agent-x.jsonl", [began, {**side, "parentUuid": "u"}], "one"
    )
    late = answer("d", usage(uncached=7), at="2026-03-03T09:00:00Z", model="house-model")
    _write(folder / "two.jsonl", [first, {**late, "cwd": "/other"}], "two")
    return folder


def _write(path: Path, lines: list[dict[str, object]], session: str) -> None:
    told = [json.dumps({**line, "sessionId": session}) for line in lines]
    path.write_text("\n".join(told) + "\n", encoding="utf-8")


def test_every_table_adds_up_to_the_total_and_copies_count_once(run: Run, sessions: Path) -> None:
    found = json.loads(run("cost", "--json").stdout)
    total = msgspec.convert(found["total"], Spend)
    assert (total.requests, total.unpriced, found["sessions"], found["repeated"]) == (4, 1, 2, 1)
    assert set(found["by"]) == set(COST_VIEWS)
    for rows in found["by"].values():
        for kind in KINDS:
            assert sum(row[kind] for row in rows.values()) == getattr(total, kind)
        assert sum(row["dollars"] for row in rows.values()) == pytest.approx(total.dollars)


def test_costs_are_booked_to_tools_servers_and_subagents(run: Run, sessions: Path) -> None:
    by = json.loads(run("cost", "--json").stdout)["by"]
    assert set(by["tool"]) == {"Read", "mcp__hub__find", "Task", "no tool"}
    assert by["tool"]["Read"]["dollars"] == by["tool"]["mcp__hub__find"]["dollars"]
    assert set(by["server"]) == {"hub", "no MCP server"}
    assert {name: row["requests"] for name, row in by["subagent"].items()} == {
        "main conversation": 3, "explorer": 1,
    }  # fmt: skip


def test_days_projects_and_sessions_select(run: Run, sessions: Path) -> None:
    late = json.loads(run("cost", "--json", "--since", "2026-03-03").stdout)
    assert list(late["by"]["model"]) == ["house-model"]
    early = json.loads(run("cost", "--json", "--until", "2026-03-02").stdout)
    assert early["total"]["requests"] == 3
    other = json.loads(run("cost", "--json", "--project", "/other").stdout)
    assert set(other["by"]["project"]) == {"/other"}
    one = json.loads(run("cost", str(sessions / "one.jsonl"), "--json").stdout)
    assert one["total"]["requests"] == 3
    assert run("cost", "--since", "yesterday").exit_code == 2
    assert run("cost", "--project", "/nowhere").exit_code == 1


def test_the_tables_fit_and_say_what_has_no_price(run: Run, sessions: Path) -> None:
    done = run("cost")
    assert done.exit_code == 0
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "1 request not in the dollars" in done.stdout
    assert "1 more are copies" in done.stdout


def test_own_prices_come_first(run: Run, sessions: Path, project: Path) -> None:
    own = project / "prices.json"
    own.write_text('{"house-model": {"input": 1000000, "output": 0}}', encoding="utf-8")
    found = json.loads(run("cost", "--json", "--prices", str(own)).stdout)
    assert (found["by"]["model"]["house-model"]["dollars"], found["total"]["unpriced"]) == (7.0, 0)


def test_a_file_that_is_no_transcript_is_said_and_passed_over(run: Run, sessions: Path) -> None:
    (sessions / "broken.jsonl").write_bytes(b"\x00\xff nothing\n")
    done = run("cost", "--json")
    assert json.loads(done.stdout)["total"]["requests"] == 4
    assert "broken.jsonl" in done.stderr
