"""Requests go out with the view of their session, and every byte that was not edited is the client's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.proxy.request_body import RequestBody, canonical
from ctxgc.session import Session, open_store
from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent, openai_history, output
from tests.proxy.places import openai_at, proxied

LIMIT = 12_000


def server(**settings: Any) -> StrictServer:
    return StrictServer(ScriptedModel(then="fine"), **{"context_limit": LIMIT, **settings})


def raw_messages(request: RecordedRequest) -> list[bytes]:
    return RequestBody(request.raw, request.format).messages


def known(request: RecordedRequest) -> list[bytes]:
    return [canonical(raw) for raw in raw_messages(request)]


def test_a_long_session_stays_in_its_window_and_only_collections_break_the_prefix(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server() as provider, proxied(provider, context_limit=LIMIT, store=store) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files and say which value is odd")
        agent.work(24)
        assert provider.refusals == []
        assert max(request.tokens for request in provider.requests) <= LIMIT
        sent = [known(request) for request in provider.requests]
        breaks = sum(now[: len(before)] != before for before, now in itertools.pairwise(sent))
        with Session(store=store, session_id="proxy:default:s-1") as session:
            assert 0 < breaks <= len(session.gc_history)
        # The client's own history is far longer than what was sent last.
        assert len(agent.body()) > 2 * len(provider.requests[-1].raw)


def test_messages_that_were_not_edited_and_all_else_are_the_bytes_of_the_client() -> None:
    with server() as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files \ud800 and say which value is odd")
        agent.work(14)
        ours, theirs = (
            RequestBody(agent.body(), "anthropic"),
            RequestBody(provider.requests[-1].raw, "anthropic"),
        )
        assert theirs.raw("system") == ours.raw("system")
        assert theirs.field("tools")[:-2] == ours.field("tools")
        assert (ours.raw("tools") or b"")[1:-1].strip() in (theirs.raw("tools") or b"")
        edited = [raw for raw in theirs.messages if raw not in ours.messages]
        assert 0 < len(edited) < len(theirs.messages)
        assert theirs.messages[0] == ours.messages[0]
        assert provider.requests[-1].raw.count(b"cache_control") == 2


def test_a_warm_session_goes_on_as_it_was_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server() as provider:
        with proxied(provider, context_limit=LIMIT, store=store) as proxy:
            for steps in range(1, 15):
                history = openai_history(steps, "openai")
                openai_at(proxy.url).chat.completions.create(model="gpt-4o", messages=history)
        before = known(provider.requests[-1])
        with proxied(provider, context_limit=LIMIT, store=store) as proxy:
            openai_at(proxy.url).chat.completions.create(model="gpt-4o", messages=history)
        assert known(provider.requests[-1]) == before
        assert len(before) < len(history) or any(b"[ctxgc" in raw for raw in before)


def test_what_was_learned_about_estimated_counts_survives_a_restart(tmp_path: Path) -> None:
    """The provider counts a quarter of what the estimate says: without that, the restart would collect."""
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server(context_limit=None) as provider:
        with proxied(provider, context_limit=28_000, store=store) as proxy:
            agent = ClaudeAgent(proxy.url)
            agent.say("read all files")
            agent.work(12)
            sent = provider.requests[-1].raw
        before = stored(store)
        with proxied(provider, context_limit=28_000, store=store) as proxy:
            agent.url = proxy.url
            assert agent.send().status_code == 200
        assert provider.requests[-1].raw == sent
        assert stored(store)[0] == before[0]
        assert stored(store)[1] == before[1] + 1
        assert before[2] > 1


def stored(store: str) -> tuple[list[Any], int, float]:
    """Return the collections of the stored session, its booked requests, and how far it overestimated."""
    name = "proxy:default:s-1"
    with Session(
        store=store, session_id=name, model="claude-sonnet-5", context_limit=28_000
    ) as one:
        calibrated = one.usage().total_tokens
        booked = one.inspect().state.savings.savings.requests
        (ratios,) = one.inspect().state.calibrations.values()
    assert calibrated > 0
    return one.gc_history, booked, 1 / max(ratios)


def test_two_sessions_and_the_lines_of_one_are_kept_apart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server() as provider, proxied(provider, context_limit=LIMIT, store=store) as proxy:
        agents = [
            ClaudeAgent(proxy.url, "a"),
            ClaudeAgent(proxy.url, "a"),
            ClaudeAgent(proxy.url, "b"),
        ]
        agents[0].say("main: read all files")
        agents[1].say("subagent: read some files")
        agents[2].say("main: read all files")
        for number in range(8):
            for agent in agents:
                agent.work(1, number)
        assert provider.refusals == []
        for agent, request in zip(agents, provider.requests[-3:], strict=True):
            assert request.messages[0] == agent.history[0]
    opened = open_store(store)
    assert sorted(info.session_id for info in opened.sessions()) == [
        "proxy:default:a", "proxy:default:a:2", "proxy:default:b",
    ]  # fmt: skip
    opened.close()


def test_a_shrunken_history_is_the_same_session_taken_back(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server() as provider, proxied(provider, context_limit=LIMIT, store=store) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files")
        agent.work(10)
        del agent.history[-8:]
        agent.say("no, stop and think first")
        agent.work(3, 50)
        assert provider.refusals == []
    opened = open_store(store)
    assert [info.session_id for info in opened.sessions()] == ["proxy:default:s-1"]
    opened.close()


@pytest.mark.parametrize("form", ["openai", "responses"])
def test_openai_histories_stay_in_their_window_too(form: str) -> None:
    with server() as provider, proxied(provider, context_limit=LIMIT) as proxy:
        client = openai_at(proxy.url)
        for steps in range(1, 21):
            history = openai_history(steps, form)
            if form == "openai":
                client.chat.completions.create(model="gpt-4o", messages=history)
            else:
                client.responses.create(model="gpt-4o", input=history, store=False)
        assert provider.refusals == []
        assert max(request.tokens for request in provider.requests) <= LIMIT
        assert len(provider.requests[-1].raw) < len(json.dumps(openai_history(20, form))) / 2


def test_a_request_that_the_provider_finds_too_long_is_sent_again_smaller() -> None:
    with server(context_limit=4_000) as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = ClaudeAgent(proxy.url)
        agent.say("read all files")
        agent.work(6)
        assert len(provider.refusals) > 0
        assert all(answer.status_code == 200 for answer in agent.answers)


def test_what_cannot_be_made_smaller_is_answered_with_the_error_of_the_provider() -> None:
    with server(context_limit=900) as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = ClaudeAgent(proxy.url)
        refused = agent.say(output(3))
        assert refused.status_code == 400
        assert "prompt is too long" in refused.json()["error"]["message"]


def test_the_summary_that_an_agent_asks_for_is_made_from_all_and_checkpointed(
    tmp_path: Path,
) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with server(context_limit=None) as provider:
        with proxied(provider, context_limit=40_000, store=store) as proxy:
            agent = ClaudeAgent(proxy.url)
            agent.say("read all files")
            agent.work(14)
            asked = "Your task is to create a detailed summary of the conversation so far"
            agent.say(f"CRITICAL: Respond with TEXT ONLY.\n\n{asked}")
        assert provider.requests[-1].raw == agent.body()
    with Session(store=store, session_id="proxy:default:s-1") as session:
        assert [each.label for each in session.checkpoints()][-1] == "before the agent's compaction"


def test_server_held_threads_and_what_cannot_be_read_go_out_as_they_came() -> None:
    with server() as provider, proxied(provider, context_limit=LIMIT) as proxy:
        client = openai_at(proxy.url)
        first = client.responses.create(model="gpt-4o", input="hello")
        client.responses.create(model="gpt-4o", input="and?", previous_response_id=first.id)
        assert [json.loads(request.raw)["input"] for request in provider.requests] == [
            "hello",
            "and?",
        ]


def test_a_failure_of_ours_sends_the_request_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("ctxgc.proxy.conversations.Line.follow", fail)
    with server() as provider, proxied(provider, context_limit=LIMIT) as proxy:
        agent = ClaudeAgent(proxy.url)
        assert agent.say("hello").status_code == 200
        assert provider.requests[0].raw == agent.body()
