"""What the proxy measures: observed and held-out sessions, metrics, and the line that `wrap` ends with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ctxgc.proxy import upstreams, upstreams_of
from ctxgc.proxy.collecting import CollectOptions
from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent
from tests.proxy.places import proxied

LIMIT = 12_000
PROGRAM = """
import os, sys
from tests.proxy.agents import ClaudeAgent
assert os.environ["OPENAI_BASE_URL"] == os.environ["ANTHROPIC_BASE_URL"] + "/v1"
agent = ClaudeAgent(os.environ["ANTHROPIC_BASE_URL"])
agent.say("read all files")
agent.work(12)
sys.exit(7)
"""


def provider() -> StrictServer:
    return StrictServer(ScriptedModel(then="fine"), context_limit=None)


def test_an_observed_session_is_sent_as_it_is_and_its_savings_are_told_apart() -> None:
    with provider() as server, proxied(server, context_limit=LIMIT, observe=True) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files")
        agent.work(12)
        assert server.requests[-1].raw == agent.body()
        done, seen = (proxy.metrics.ledger(arm) for arm in ("collected", "observed"))
        assert (done.requests, seen.requests) == (0, 13)
        assert seen.collections > 0
        assert seen.sent_tokens < seen.counterfactual_tokens
        assert proxy.metrics.summary().startswith("13 requests, collected ")
        assert "would have been sent" in proxy.metrics.summary()


def test_metrics_say_what_passed_what_became_of_it_and_what_was_saved() -> None:
    with provider() as server, proxied(server, context_limit=LIMIT) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files")
        agent.work(12)
        reported = sum(request.tokens for request in server.requests)
        said = httpx2.get(f"{proxy.url}/metrics")
        while f" {reported}" not in said.text:  # the last answer is learned from after it was sent
            said = httpx2.get(f"{proxy.url}/metrics")
        lines = said.text.splitlines()
        ledger = proxy.metrics.ledger("collected")
        assert said.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'ctxgc_proxy_answers_total{provider="anthropic",status="200"} 13' in lines
        assert f'ctxgc_proxy_session_collections{{arm="collected"}} {ledger.collections}' in lines
        outcomes = [line for line in lines if line.startswith("ctxgc_proxy_requests_total{")]
        assert sum(float(line.rpartition(" ")[2]) for line in outcomes) == 13
        assert any('outcome="edited"' in line for line in outcomes)
        assert f'ctxgc_proxy_input_tokens_total{{arm="collected"}} {reported}' in lines


def test_a_holdout_leaves_about_that_share_of_the_sessions_alone() -> None:
    options = CollectOptions(holdout=20.0)
    arms = [options.arm_of(f"proxy:default:{number}") for number in range(1_000)]
    assert arms.count("observed") == pytest.approx(200, abs=60)
    assert CollectOptions().arm_of("proxy:default:1") == "collected"


def test_a_wrapped_program_talks_through_the_proxy_and_what_was_saved_is_the_last_line(
    tmp_path: Path,
) -> None:
    with provider() as server:
        command = [sys.executable, "-m", "ctxgc.cli", "wrap", "--context-limit", str(LIMIT)]
        environment = {**os.environ, "ANTHROPIC_BASE_URL": server.base_url}
        environment |= {"CTXGC_STATE_HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
        done = subprocess.run(
            [*command, "--", sys.executable, "-c", PROGRAM],
            env=environment, capture_output=True, encoding="utf-8", check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 7, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ctxgc: 13 requests, collected ")
        assert last.endswith("of the input bill saved")
        assert len(server.requests) == 13
        assert (tmp_path / "agents" / "stash.sqlite").exists()


def test_a_program_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxgc.cli", "wrap", "--", "no-such-program"],
        env={**os.environ, "CTXGC_STATE_HOME": str(tmp_path)},
        capture_output=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "no-such-program cannot be run" in done.stderr


def test_base_urls_of_the_environment_are_where_a_wrapped_programs_requests_go() -> None:
    environment = {"OPENAI_BASE_URL": "http://gate.example/v1"}
    assert upstreams([], upstreams_of(environment)) == {
        "anthropic": "https://api.anthropic.com",
        "openai": "http://gate.example",
    }
