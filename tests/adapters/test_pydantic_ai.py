"""pydantic-ai with the capability and with the history processor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="python -m tools.adapters run pydantic-ai")

from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessagesTypeAdapter, UsageLimits
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from ctxgc.adapters.pydantic_ai import CtxgcCapability, CtxgcHistory
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, CALLS, LIMIT, MODEL, REQUEST, Logs, strict_server

MANY = UsageLimits(request_limit=200)


def run(server: Any, text: str, *capabilities: Any, pool: Any = None, history: Any = None) -> Any:
    async def ask() -> Any:
        logs = Logs(pool)
        async with AsyncOpenAI(
            base_url=server.openai_base_url, api_key="any", max_retries=0
        ) as sdk:
            model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=sdk))
            agent = Agent(model, capabilities=list(capabilities))
            agent.tool_plain(logs.read_log)
            return await agent.run(text, usage_limits=MANY, message_history=history)

    return asyncio.run(ask())


def test_an_async_run_of_sixty_calls_fits_recalls_and_continues_from_its_messages(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(ModelHTTPError, lambda: run(server, REQUEST))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        gc = CtxgcCapability(**options)
        done = run(server, REQUEST, gc, pool=gc.sessions)
        assert done.output == ANSWER
        scenario.check_run(server)
        saved = done.all_messages_json()
        opened = gc.sessions.session().session_id
        gc.sessions.close()
        again = CtxgcCapability(**options)
        history = ModelMessagesTypeAdapter.validate_json(saved)
        assert run(server, "Still there?", again, history=history).output == "Still here."
        assert again.sessions.session().session_id == opened
        assert server.refusals == []
        again.sessions.close()


def test_an_overflow_is_answered_with_a_collection_and_asked_again() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcCapability(context_limit=200_000, store="memory:")
        assert run(server, REQUEST, gc).output == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}


def test_a_history_processor_keeps_the_view_as_the_persistent_history() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcHistory(context_limit=LIMIT, store="memory:")
        done = run(server, REQUEST, ProcessHistory(gc), pool=gc.sessions)
        assert done.output == "done"
        scenario.check_run(server, requests=CALLS + 1)
        assert b"log 9 step 3" not in done.all_messages_json()
        assert len(gc.sessions.session().arrivals()) == 2 * CALLS + 1
        saved = ModelMessagesTypeAdapter.validate_json(done.all_messages_json())
        more = run(server, "Still there?", ProcessHistory(gc), history=saved)
        assert more.output == "Still here."
        assert server.refusals == []
