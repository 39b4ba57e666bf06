"""The dashboard for real: a process of its own, and in the proxy next to a session that is at work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ctxgc.cli.serve import mounts
from ctxgc.proxy import ProxyOptions, ProxyServer
from ctxgc.testing import ScriptedModel, StrictServer
from tests.dashboard.places import RECORDED, recorded
from tests.proxy.agents import ClaudeAgent

LIMIT = 12_000


@contextmanager
def opened(link: str) -> Iterator[httpx2.Client]:
    """Yield a client that has opened the address with the token, as a browser does."""
    with httpx2.Client(base_url=link.partition("?")[0], timeout=60) as client:
        assert client.get(link, follow_redirects=True).status_code == 200
        yield client


def test_the_command_serves_what_is_recorded_and_ends_when_it_is_told(tmp_path: Path) -> None:
    recorded(tmp_path)
    env = {
        **os.environ, "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"), "CTXGC_STATE_HOME": str(tmp_path / "state"),
    }  # fmt: skip
    command = [sys.executable, "-m", "ctxgc", "dashboard", "--no-open", "--port", "0"]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stderr is not None
        link = re.findall(r"http\S+", process.stderr.readline())[0]
        with opened(link) as client:
            rows = client.get("api/sessions").json()["sessions"]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.communicate()
    assert [row["id"] for row in rows] == [f"recorded.{RECORDED}"]
    assert (tmp_path / "state" / "dashboard.token").stat().st_mode & 0o077 == 0


def test_an_action_on_a_session_at_work_does_not_disturb_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXGC_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    with StrictServer(ScriptedModel(then="fine"), context_limit=LIMIT) as server:
        options = ProxyOptions(
            port=0,
            store=f"sqlite:{tmp_path / 'stash.db'}",
            upstreams={"anthropic": server.base_url, "openai": server.base_url},
            context_limit=LIMIT,
        )
        served = mounts(options)
        with ProxyServer(options, served) as proxy:
            agent = ClaudeAgent(proxy.url)
            agent.say("read all files")
            agent.work(4)
            with opened(proxy.url + served[0].said.removeprefix("open ")) as client:
                found = client.get("api/sessions").json()
                row, csrf = found["sessions"][0], {"x-ctxgc-csrf": found["csrf"]}
                assert (row["agent"], row["requests"]) == ("proxy", 5)
                path = f"api/sessions/{row['id']}"
                segment = _result(client.get(f"{path}/timeline").json())
                done = client.post(f"{path}/actions/pin", json={"segment": segment}, headers=csrf)
                assert done.json()["ok"] is True
                agent.work(8, start=4)
                timeline = client.get(f"{path}/timeline").json()
    assert timeline["row"]["requests"] == 13
    spans = next(each["spans"] for each in timeline["segments"] if each["id"] == segment)
    assert spans[-1][1] == 14
    assert spans[-1][3:] == ["whole", "pinned"]
    # What was counted for the newest request is stored with the next one.
    assert [each["estimated"] for each in timeline["requests"][:12]] == [False] * 12


def _result(timeline: dict[str, Any]) -> str:
    return next(str(each["id"]) for each in timeline["segments"] if each["source"] == "result")
