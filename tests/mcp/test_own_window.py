"""The server of an agent tells how full the agent's own window is: of the transcript that its hooks see.

Hooks and server are real processes, and the test is the agent that starts both.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from ctxgc.insight import SessionFollower
from ctxgc.places import store_in
from tests.mcp.clients import Json, call, over_stdio, run
from tests.session_files import ClaudeCode, dumped

UNKNOWN = {
    "tokens": 0, "soft_limit": 140_000, "hard_limit": 180_000, "context_limit": 200_000,
    "percent": 0.0, "zone": "unknown",
}  # fmt: skip


def _transcript(folder: Path, used: int, name: str = "session.jsonl") -> Path:
    made = ClaudeCode()
    made.user("Make the parser green.")
    usage = {"input_tokens": 10, "cache_read_input_tokens": used - 10, "output_tokens": 0}
    text = {"type": "text", "text": "It is green."}
    message = {
        "id": "m",
        "role": "assistant",
        "model": "claude-x",
        "content": [text],
        "usage": usage,
    }
    made.line("assistant", message=message)
    path = folder / name
    path.write_bytes(dumped(made.lines))
    return path


def _grow(path: Path, used: int) -> None:
    last = json.loads(path.read_bytes().splitlines()[-1])
    usage = {"input_tokens": used, "output_tokens": 0}
    message = {**last["message"], "id": "later", "usage": usage}
    line = {
        **last,
        "parentUuid": last["uuid"],
        "uuid": f"{last['uuid'][:-2]}77",
        "message": message,
    }
    with path.open("ab") as file:
        file.write(dumped([line]))


def _hook(folder: Path, event: str = "session-start", *, shell: bool = False, **said: Any) -> None:
    words = [sys.executable, "-P", "-m", "ctxgc.agents.hook", event]
    words += ["--store", store_in(str(folder))]
    data = json.dumps({"session_id": "s", "cwd": str(folder), **said}).encode()
    shown: Any = f"{shlex.join(words)}; true" if shell else words
    subprocess.run(shown, input=data, check=True, shell=shell, capture_output=True)


def _server(folder: Path, *, agent: bool = True) -> StdioServerParameters:
    more = ("--agent", "claude-code") if agent else ()
    return over_stdio(folder, "--store", store_in(str(folder)), *more)


def _answers(folder: Path, *tools: str, agent: bool = True) -> list[Json]:
    """Return what the tools of a server answer, one after the other."""

    async def work() -> list[Json]:
        async with Client(_server(folder, agent=agent)) as client:
            return [await call(client, tool, **_GIVEN.get(tool, {})) for tool in tools]

    return run(work)


_GIVEN: dict[str, Json] = {
    "context_ingest": {"segments": [{"text": "a note", "type": "note"}]},
    "context_search": {"query": "note"},
}


@pytest.mark.parametrize("shell", [False, True])
def test_usage_and_every_zone_speak_of_the_transcript(tmp_path: Path, shell: bool) -> None:
    path = _transcript(tmp_path, 173_000)
    _hook(tmp_path, shell=shell, transcript_path=str(path), source="startup")
    follower = SessionFollower(path)
    follower.look()
    seen = follower.window()
    assert (seen.tokens, seen.limit, seen.zone) == (173_000, 200_000, "danger")
    usage, ingested, found = _answers(tmp_path, "context_usage", "context_ingest", "context_search")
    size = {
        "tokens": 173_000, "soft_limit": 140_000, "hard_limit": 180_000, "context_limit": 200_000,
        "percent": 86.5, "zone": "danger",
    }  # fmt: skip
    assert (usage["usage"], usage["health"], found["usage"]) == (size, "poor", size)
    assert (ingested["usage"]["percent"], ingested["usage"]["zone"]) == (86.5, "danger")


def test_it_follows_the_session_as_it_grows_and_changes(tmp_path: Path) -> None:
    first, second = _transcript(tmp_path, 20_000), _transcript(tmp_path, 150_000, "next.jsonl")
    _hook(tmp_path, transcript_path=str(first), source="startup")

    async def work() -> list[Json]:
        async with Client(_server(tmp_path)) as client:
            told = [(await call(client, "context_usage"))["usage"]]
            _grow(first, 100_000)
            told.append((await call(client, "context_usage"))["usage"])
            _hook(tmp_path, transcript_path=str(second), source="clear")
            told.append((await call(client, "context_usage"))["usage"])
            return told

    told = run(work)
    assert [each["tokens"] for each in told] == [20_000, 100_000, 150_000]
    assert [each["zone"] for each in told] == ["safe", "safe", "warning"]


def test_the_window_is_as_large_as_the_status_line_was_told(tmp_path: Path) -> None:
    path = _transcript(tmp_path, 173_000)
    window = {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 173_000}}
    _hook(tmp_path, "status-line", transcript_path=str(path), context_window=window)
    _hook(tmp_path, transcript_path=str(path), source="resume")
    (usage,) = _answers(tmp_path, "context_usage")
    assert (usage["usage"]["context_limit"], usage["usage"]["zone"]) == (1_000_000, "safe")


def test_without_a_transcript_the_zone_is_unknown_and_never_safe(tmp_path: Path) -> None:
    usage, ingested = _answers(tmp_path, "context_usage", "context_ingest")
    assert (usage["usage"], usage["health"]) == (UNKNOWN, "unknown")
    (said,) = usage["recommendations"]
    assert said.startswith("The server does not see how full your window is, and counts only what")
    assert ingested["usage"]["zone"] == "unknown"
    _hook(tmp_path, transcript_path=str(tmp_path / "not there yet.jsonl"), source="startup")
    assert _answers(tmp_path, "context_usage")[0]["usage"]["zone"] == "unknown"


def test_a_client_without_a_window_of_its_own_is_told_of_what_it_gave(tmp_path: Path) -> None:
    usage, ingested = _answers(tmp_path, "context_usage", "context_ingest", agent=False)
    assert (usage["usage"], usage["recommendations"]) == (UNKNOWN, [])
    assert ingested["usage"]["zone"] == "safe"


def test_the_session_of_another_agent_is_not_taken_for_its_own(tmp_path: Path) -> None:
    path = _transcript(tmp_path, 173_000)
    said = json.dumps({"transcript_path": str(path), "cwd": str(tmp_path), "source": "startup"})
    hook = [sys.executable, "-P", "-m", "ctxgc.agents.hook", "session-start"]
    hook += ["--store", store_in(str(tmp_path))]
    other = f"import subprocess; subprocess.run({hook!r}, input={said.encode()!r}); input()"
    agent = subprocess.Popen([sys.executable, "-c", other], stdin=subprocess.PIPE)
    try:
        noted = tmp_path / "running" / f"{agent.pid}.json"
        while not noted.exists():
            assert agent.poll() is None
        assert _answers(tmp_path, "context_usage")[0]["usage"]["zone"] == "unknown"
    finally:
        agent.communicate(b"\n")
    _hook(tmp_path, transcript_path=str(path))
    assert [p.name for p in (tmp_path / "running").iterdir()] == [f"{os.getpid()}.json"]


def test_a_damaged_note_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "running").mkdir()
    (tmp_path / "running" / f"{os.getpid()}.json").write_bytes(b'{"transcript": 3')
    assert _answers(tmp_path, "context_usage")[0]["usage"]["zone"] == "unknown"
