"""With `--own-compaction` the agent's summary is written here, and what follows goes on with its session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ctxgc.session import Session, open_store
from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent, openai_history, output
from tests.proxy.places import KEY, anthropic_at, openai_at, proxied

LIMIT = 40_000
PROMPT = (
    "CRITICAL: TEXT ONLY.\n\nYour task is to create a detailed summary of the conversation so far."
)
TASK = "Read all files. You must never change them."
DECISION = "We decided to keep value_3_7."
OUR_TOOL = {"name": "mcp__ctxgc__context_recall", "input_schema": {"type": "object"}}
HANDLE = re.compile(r"h-[a-z2-7]{16}")


def worked(url: str) -> ClaudeAgent:
    """Return an agent that has worked for a while."""
    agent = ClaudeAgent(url)
    agent.tools.append(OUR_TOOL)
    agent.say(TASK)
    agent.work(6)
    agent.history.append({"role": "assistant", "content": DECISION})
    return agent


def streamed(agent: ClaudeAgent) -> str:
    """Return the summary as Claude Code asks for it."""
    asked = json.loads(agent.body())
    del asked["metadata"]
    headers = {"x-ctxgc-session": "s-1"}
    with anthropic_at(agent.url).messages.stream(**asked, extra_headers=headers) as stream:
        return stream.get_final_text()


@pytest.mark.parametrize("is_streamed", [False, True])
def test_claude_codes_summary_is_quoted_from_the_session_and_no_model_is_asked(
    is_streamed: bool, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with StrictServer(ScriptedModel(then="fine")) as provider:
        with proxied(provider, context_limit=LIMIT, store=store, own_compaction=True) as proxy:
            agent = worked(proxy.url)
            before = len(provider.requests)
            agent.history.append({"role": "user", "content": PROMPT})
            summary = streamed(agent) if is_streamed else agent.send().json()["content"][0]["text"]
            assert len(provider.requests) == before
            assert summary.startswith("<summary>\n")
            assert summary.endswith("\n</summary>")
            for root in (TASK, "You must never change them.", DECISION):
                assert f"- {root}" in summary
            assert "Your task is to create" not in summary
            agent.history = [{"role": "user", "content": f"Going on. {summary}"}]
            agent.work(1, 50)
        with Session(store=store, session_id="proxy:default:s-1", plugin="gc_none") as session:
            named = [session.read(handle) for handle in HANDLE.findall(summary)]
            assert named == [output(number) for number in range(6)]
            labels = [each.label for each in session.checkpoints()]
        assert labels == ["before the agent's compaction"]
        assert provider.refusals == []
    opened = open_store(store)
    assert [info.session_id for info in opened.sessions()] == ["proxy:default:s-1"]
    opened.close()


def test_a_second_summary_still_has_what_the_first_one_was_about() -> None:
    with (
        StrictServer(ScriptedModel(then="fine")) as provider,
        proxied(provider, context_limit=LIMIT, own_compaction=True) as proxy,
    ):
        agent = worked(proxy.url)
        for _ in range(2):
            agent.history.append({"role": "user", "content": PROMPT})
            summary = agent.send().json()["content"][0]["text"]
            agent.history = [{"role": "user", "content": summary}]
            agent.work(1, 50)
        assert f"Task (the first request):\n- {TASK}" in summary
        assert f"Decisions:\n- {DECISION}" in summary


def codex(url: str, path: str, items: list[Any], **more: Any) -> httpx2.Response:
    asked = {"model": "gpt-5", "input": items, "store": False, **more}
    headers = {"authorization": f"Bearer {KEY}", "thread_id": "t-1"}
    return httpx2.post(f"{url}/v1{path}", json=asked, headers=headers, timeout=60)


def test_codex_gets_an_item_that_is_sent_on_as_a_message() -> None:
    history = openai_history(6, "responses")
    with StrictServer(ScriptedModel(then="fine")) as provider:
        with proxied(provider, context_limit=LIMIT, own_compaction=True) as proxy:
            assert codex(proxy.url, "/responses", history).status_code == 200
            whole = codex(proxy.url, "/responses/compact", history).json()
            trigger = [*history, {"type": "compaction_trigger"}]
            stream = openai_at(proxy.url).responses.create(
                model="gpt-5", input=trigger, stream=True, extra_headers={"thread_id": "t-1"}
            )
            events = list(stream)
            assert len(provider.requests) == 1
            item = events[-1].to_dict()["response"]["output"][0]
            assert [event.type for event in events] == [
                "response.created",
                "response.output_item.added",
                "response.output_item.done",
                "response.completed",
            ]
            assert whole["object"] == "response.compaction"
            assert whole["output"][0] == history[0]
            for found in (item, whole["output"][1]):
                assert found["type"] == "compaction"
                asked = [history[0], found, {"role": "user", "content": "go on"}]
                assert codex(proxy.url, "/responses", asked).status_code == 200
                sent = provider.requests[-1].messages[1]
                assert sent["role"] == "user"
                assert "- read all files" in sent["content"][0]["text"]
        assert provider.refusals == []


def test_what_only_the_provider_can_compact_and_what_is_observed_is_sent_on() -> None:
    with StrictServer(ScriptedModel(then="fine")) as provider:
        with proxied(provider, context_limit=LIMIT, own_compaction=True, observe=True) as proxy:
            agent = worked(proxy.url)
            agent.say(PROMPT)
        assert provider.requests[-1].raw == agent.body()
