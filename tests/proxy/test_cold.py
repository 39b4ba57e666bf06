"""The proxy knows each cache's clock: what lapses when, what a resume costs, and what was missed and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from ctxgc.errors import ConfigError
from ctxgc.proxy import ProxyOptions, ProxyServer
from ctxgc.proxy.cache_watch import CacheMiss, CacheWatch, MissCause, SentRequest, cache_seconds
from ctxgc.proxy.request_body import RequestBody
from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent
from tests.proxy.places import proxied

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
RECALL = {"name": "mcp__ctxgc__context_recall", "input_schema": {"type": "object"}}


class Clock:
    """Shows the time that a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def wait(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@contextmanager
def working(clock: Clock, ttl: str = "5m", **options: Any) -> Iterator[tuple[ClaudeAgent, Any]]:
    """Give an agent that can recall and has read the same files twice, in a window with much room."""
    server = StrictServer(ScriptedModel(then="fine"), context_limit=None)
    with server, proxied(server, clock=clock, context_limit=200_000, **options) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.tools.append(RECALL)
        agent.cache_control = {"type": "ephemeral", "ttl": ttl}
        agent.say("read all files")
        agent.work(40)
        yield agent, server


def row(agent: ClaudeAgent) -> dict[str, Any]:
    said = httpx2.get(f"{agent.url}/ctxgc/sessions", params={"session": agent.session})
    return dict(said.json()["sessions"][0])


@pytest.mark.parametrize(
    ("ttl", "minutes", "is_cold"), [("5m", 6, True), ("1h", 6, False), ("1h", 61, True)]
)
def test_a_request_after_the_cache_lapsed_is_collected_as_deeply_as_was_foretold(
    ttl: str, minutes: float, is_cold: bool
) -> None:
    clock = Clock()
    with working(clock, ttl) as (agent, _):
        before = row(agent)
        clock.wait(minutes)
        agent.work(1, 40)
        after = row(agent)
    cold = before["cold"]
    assert cold["seconds_left"] == {"5m": 300, "1h": 3_600}[ttl]
    assert cold["tokens_after"] < cold["tokens"] == before["tokens"]
    assert cold["dollars_after"] / cold["dollars"] == pytest.approx(
        cold["tokens_after"] / cold["tokens"], rel=1e-3
    )
    grown = after["tokens"] - (cold["tokens_after"] if is_cold else before["tokens"])
    assert 0 < grown < before["tokens"] / 20
    assert (after["ledger"]["collections"] > before["ledger"]["collections"]) is is_cold


def test_what_a_resume_costs_is_said_in_one_line_and_in_metrics() -> None:
    clock = Clock()
    with working(clock) as (agent, _):
        clock.wait(80 / 60)
        cold = row(agent)["cold"]
        assert cold["text"] == (
            f"cold in 3:40; resume {cold['dollars']:.2f} $, after a collection {cold['dollars_after']:.2f} $"
        )
        clock.wait(10)
        assert row(agent)["cold"]["text"].startswith("cold; resume ")
        lines = httpx2.get(f"{agent.url}/metrics").text.splitlines()
    name = 'session="proxy:default:s-1"'
    assert f"ctxgc_proxy_session_cold_in_seconds{{{name}}} 0" in lines
    assert f"ctxgc_proxy_session_resume_dollars{{{name}}} {cold['dollars']:.15g}" in lines


def test_the_board_shows_a_caller_only_its_own_sessions(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann a-token-of-her-own-1\nbob a-token-of-his-own-22\n")
    tokens.chmod(0o600)
    server = StrictServer(ScriptedModel(then="fine"))
    given = {"use_token": True, "token_file": str(tokens), "context_limit": 9_000}
    with server, proxied(server, **given) as proxy:
        ask = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        ann, bob = ({"x-ctxgc-token": line.split()[1]} for line in tokens.read_text().splitlines())
        key = {"authorization": "Bearer k", "x-ctxgc-session": "one"}
        httpx2.post(f"{proxy.url}/v1/chat/completions", json=ask, headers={**key, **ann})
        shown = [
            [
                each["session"]
                for each in httpx2.get(f"{proxy.url}/ctxgc/sessions", headers=who).json()[
                    "sessions"
                ]
            ]
            for who in (ann, bob)
        ]
        assert shown == [["proxy:ann:one"], []]
        assert "proxy:ann" not in httpx2.get(f"{proxy.url}/metrics", headers=bob).text


# -- caps


def test_a_session_over_its_cap_is_refused_in_the_words_of_its_provider(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    clock = Clock()
    with working(clock, store=store) as (agent, _):
        spent = row(agent)["spent"]
    server = StrictServer(ScriptedModel(then="fine"), context_limit=None)
    capped = {"store": store, "context_limit": 200_000, "cap_session": spent, "clock": clock}
    with server, proxied(server, **capped) as proxy:
        agent.url = proxy.url
        refused = agent.send()
        assert refused.status_code == 402
        assert refused.headers["x-should-retry"] == "false"
        assert refused.json() == {
            "type": "error",
            "error": {
                "type": "billing_error",
                "message": f"ctxgc: this session has cost {spent:.2f} $, and its cap is {spent:.2f} $",
            },
        }
        assert server.requests == []
        other = ClaudeAgent(proxy.url, "s-2")
        assert other.say("hello").status_code == 200


def test_the_cap_of_a_day_counts_all_sessions_and_ends_with_the_day(tmp_path: Path) -> None:
    clock = Clock()
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with working(clock, store=store) as (agent, _):
        spent = row(agent)["spent"]
    server = StrictServer(ScriptedModel(then="fine"))
    with server, proxied(server, store=store, clock=clock, cap_day=spent) as proxy:
        ask = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        refused = httpx2.post(f"{proxy.url}/v1/chat/completions", json=ask)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
        clock.wait(24 * 60)
        assert ClaudeAgent(proxy.url, "s-2").say("hello").status_code == 200


def test_caps_need_sessions() -> None:
    with pytest.raises(ConfigError, match="a spend cap needs sessions"):
        ProxyServer(ProxyOptions(port=0, collect=False, cap_day=1.0))


# -- what a request asks of the cache, and what it had not kept


def body(form: str, **fields: Any) -> RequestBody:
    key = "input" if form == "responses" else "messages"
    return RequestBody(msgspec.json.encode({key: [], **fields}), form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (body("anthropic"), None),
        (body("anthropic", cache_control={"type": "ephemeral"}), 300),
        (body("anthropic", system=[{"type": "text", "text": "x", "cache_control": {"ttl": "1h"}}]), 3_600),
        (body("openai"), None),
        (body("responses", prompt_cache_options={"ttl": "30m"}), 1_800),
        (body("responses", prompt_cache_retention="24h"), 86_400),
        (body("openai", prompt_cache_retention="in_memory"), None),
    ],
)  # fmt: skip
def test_a_request_says_for_how_long_it_is_to_be_kept(
    asked: RequestBody, seconds: float | None
) -> None:
    assert cache_seconds(asked) == seconds


def request(minute: float = 0, **known: Any) -> SentRequest:
    return SentRequest(sent_at=NOON + timedelta(minutes=minute), model="m", **known)


@pytest.mark.parametrize(
    ("second", "diagnostics", "cause"),
    [
        (request(1), {}, "unknown"),
        (request(6), {}, "lapsed"),
        (request(1, collected=True), {}, "collection"),
        (request(1, changed=frozenset({"tools"}), collected=True), {}, "tools"),
        (request(1, changed=frozenset({"history"})), {}, "rewind"),
        (request(1), {"cache_miss_reason": {"type": "system_changed"}}, "system"),
        (request(1, collected=True), {"reason": "input_changed"}, "collection"),
    ],
)
def test_a_miss_is_told_apart_by_its_cause(
    second: SentRequest, diagnostics: dict[str, Any], cause: MissCause
) -> None:
    watch = CacheWatch()
    assert watch.look(request(), 10_000, 0, life=300, diagnostics={}) is None
    found = watch.look(second, 11_000, 1_000, life=300, diagnostics=diagnostics)
    assert found == CacheMiss(cause=cause, tokens=9_000, by_ctxgc=cause == "collection")


def test_what_a_cache_gives_back_is_no_miss() -> None:
    watch = CacheWatch()
    watch.look(request(), 10_000, 0, life=300, diagnostics={})
    assert watch.look(request(1), 11_000, 9_900, life=300, diagnostics={}) is None
