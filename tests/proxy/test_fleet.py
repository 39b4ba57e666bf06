"""Several proxies on one Postgres: any of them takes any request, and one that is killed is not missed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ctxgc.proxy.request_body import RequestBody, canonical
from ctxgc.session import Session, open_store
from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent
from tests.stores.server import fresh_database

LIMIT = 12_000


@contextmanager
def process(
    server: StrictServer, store: str, home: Path
) -> Iterator[tuple[str, subprocess.Popen[Any]]]:
    """Run a proxy in a process of its own and give its address."""
    command = [
        sys.executable, "-m", "ctxgc.cli", "serve", "--port", "0", "--store", store,
        "--context-limit", str(LIMIT), "--upstream", f"anthropic={server.base_url}",
    ]  # fmt: skip
    environment = {**os.environ, "CTXGC_STATE_HOME": str(home)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, encoding="utf-8"
    ) as running:
        try:
            assert running.stderr is not None
            said = next(line for line in running.stderr if line.startswith("ctxgc serves "))
            yield said.split()[2], running
        finally:
            running.kill()
            if running.stderr is not None:
                running.stderr.close()


def known(raw: bytes) -> list[bytes]:
    return [canonical(each) for each in RequestBody(raw, "anthropic").messages]


def test_two_processes_take_the_requests_of_one_session_in_turn_and_one_goes_on_alone(
    postgres_server: str, tmp_path: Path
) -> None:
    server = StrictServer(ScriptedModel(then="fine"), context_limit=LIMIT)
    with fresh_database(postgres_server) as store, server, ExitStack() as stack:
        proxies = [stack.enter_context(process(server, store, tmp_path)) for _ in range(2)]
        agent = ClaudeAgent(proxies[0][0])
        agent.say("read all files")
        for number in range(16):
            agent.url = proxies[number % 2][0]
            agent.work(1, number)
        outcomes = "".join(httpx2.get(f"{url}/metrics").text for url, _ in proxies)
        proxies[0][1].kill()
        agent.url = proxies[1][0]
        agent.work(4, 16)
        assert 'outcome="failed"' not in outcomes
        assert outcomes.count('outcome="edited"') == 2
        assert server.refusals == []
        sent = [known(request.raw) for request in server.requests]
        breaks = sum(now[: len(before)] != before for before, now in itertools.pairwise(sent))
        with Session(store=store, session_id="proxy:default:s-1") as session:
            assert 0 < breaks <= len(session.gc_history)
        opened = open_store(store)
        assert [info.session_id for info in opened.sessions()] == ["proxy:default:s-1"]
        opened.close()
