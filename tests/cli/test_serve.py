"""`ctxgc serve` is one process with the proxy and MCP on one store."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest
from mcp import Client

from ctxgc.cli.serve import mounts
from ctxgc.proxy import ProxyOptions, ProxyServer
from ctxgc.testing import ScriptedModel, StrictServer
from tests.mcp.clients import call, over_http, run
from tests.proxy.agents import ClaudeAgent, output

LIMIT = 12_000
HANDLE = re.compile(rb"h-[a-z2-7]{16}")
OUR_TOOL = {"name": "mcp__ctxgc__context_recall", "input_schema": {"type": "object"}}


def test_what_the_proxy_moved_out_is_recalled_over_mcp_of_the_same_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with StrictServer(ScriptedModel(then="fine"), context_limit=LIMIT) as server:
        options = ProxyOptions(
            port=0,
            store=f"sqlite:{tmp_path / 'stash.db'}",
            upstreams={"anthropic": server.base_url, "openai": server.base_url},
            context_limit=LIMIT,
        )
        with ProxyServer(options, mounts(options)) as proxy:
            agent = ClaudeAgent(proxy.url)
            agent.tools.append(OUR_TOOL)
            agent.say("read all files")
            agent.work(20)
            handle = HANDLE.findall(server.requests[-1].raw)[0].decode()
            assert httpx2.post(f"{proxy.url}/mcp", json={}).status_code == 401
            recalled = recall(proxy.url, next(tmp_path.rglob("mcp.token")), handle)
    assert recalled in [output(number) for number in range(20)]


def recall(url: str, tokens: Path, handle: str) -> str:
    """Return a text as an MCP client gets it."""

    async def work() -> str:
        token = tokens.read_text(encoding="utf-8").split()[1]
        bearer = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=bearer) as http,
            Client(over_http(f"{url}/mcp", http)) as client,
        ):
            return str((await call(client, "context_recall", handle=handle))["text"])

    return run(work)
