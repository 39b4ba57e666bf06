"""Haystack's agent with the compactor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("haystack", reason="python -m tools.adapters run haystack")

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.hooks.compaction import CompactionHook
from haystack.tools import Tool
from haystack.utils import Secret

from ctxgc.adapters.haystack import CtxgcCompactor
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, LIMIT, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")


def agent(server: Any, gc: CtxgcCompactor | None) -> Agent:
    logs = Logs(gc and gc.sessions)
    own = Tool(
        name="read_log", description="Read a log.", parameters=scenario.SCHEMA,
        function=logs_reader(logs),
    )  # fmt: skip
    generator = OpenAIChatGenerator(
        model=MODEL,
        api_key=Secret.from_token("any"),
        api_base_url=server.openai_base_url,
        max_retries=0,
    )
    hooks = {"before_llm": [CompactionHook(gc, context_window=LIMIT)]} if gc else None
    tools = [own, *(gc.tools() if gc else [])]
    return Agent(chat_generator=generator, tools=tools, hooks=hooks, max_agent_steps=99)


def logs_reader(logs: Logs) -> Any:
    def read_log(number: int) -> str:
        if number != scenario.PIN_AT:
            return logs.read_log(number)
        return scenario.log_text(number)  # nothing came in yet that could be pinned

    return read_log


def said(text: str) -> Any:
    return [ChatMessage.from_user(text)]


def test_an_agent_of_sixty_calls_fits_recalls_and_continues_from_its_persistent_messages(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(Exception, lambda: agent(server, None).run(messages=said(REQUEST)))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        gc = CtxgcCompactor(**options)
        done = agent(server, gc).run(messages=said(REQUEST))
        assert done["last_message"].text == ANSWER
        assert server.refusals == []
        assert all(REQUEST in scenario.sent(request) for request in server.requests)
        assert "log 9 step 3" not in str(done["messages"])
        gc.sessions.close()
        saved = [ChatMessage.from_dict(message.to_dict()) for message in done["messages"]]
        again = CtxgcCompactor.from_dict(gc.to_dict())
        more = agent(server, again).run(messages=[*saved, *said("Still there?")])
        assert more["last_message"].text == "Still here."
        assert server.refusals == []
        again.sessions.close()


def test_the_async_agent_does_the_same() -> None:
    with strict_server() as server:
        gc = CtxgcCompactor(context_limit=LIMIT, store="memory:")
        done = asyncio.run(agent(server, gc).run_async(messages=said(REQUEST)))
        assert done["last_message"].text == ANSWER
        assert server.refusals == []


def test_nothing_to_compact_is_none() -> None:
    gc = CtxgcCompactor(context_limit=LIMIT, store="memory:")
    hook = CompactionHook(gc, context_window=LIMIT)
    assert gc.compact(said("Hello"), 1_000, hook.token_counter) is None
