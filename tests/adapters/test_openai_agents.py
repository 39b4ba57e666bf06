"""OpenAI's Agents SDK with the session and its filter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agents", reason="python -m tools.adapters run openai-agents")

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI, BadRequestError

from ctxgc.adapters.openai_agents import CtxgcSession
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, CALLS, LIMIT, MODEL, REQUEST, Logs, strict_server

set_tracing_disabled(True)


async def run(
    server: Any, session: Any, text: str, kind: Any = OpenAIResponsesModel, pool: Any = None
) -> str:
    logs = Logs(pool)

    @function_tool
    def read_log(number: int) -> str:
        """Read a log."""
        return logs.read_log(number)

    recall = session.tools() if isinstance(session, CtxgcSession) else []
    config = session.run_config() if isinstance(session, CtxgcSession) else RunConfig()
    async with AsyncOpenAI(base_url=server.openai_base_url, api_key="any", max_retries=0) as sdk:
        agent = Agent(
            name="reader",
            instructions="Be brief.",
            model=kind(model=MODEL, openai_client=sdk),
            tools=[read_log, *recall],
        )
        done = await Runner.run(agent, text, session=session, run_config=config, max_turns=99)
        return str(done.final_output)


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_an_async_run_of_sixty_calls_fits_recalls_and_continues_from_its_session(
    kind: Any, tmp_path: Any
) -> None:
    def inner(name: str) -> Any:
        return scenario.closed_later(SQLiteSession("one", tmp_path / name))

    with strict_server() as server:
        plain = inner("plain.db")
        scenario.fails_with(BadRequestError, lambda: asyncio.run(run(server, plain, REQUEST, kind)))
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with strict_server() as server:
        session = CtxgcSession(inner("agents.db"), context_limit=LIMIT, store=store)
        scenario.closed_later(session.sessions)
        answer = asyncio.run(run(server, session, REQUEST, kind, session.sessions))
        assert answer == ANSWER
        scenario.check_run(server)
        kept = asyncio.run(session.get_items())
        outputs = [item["output"] for item in kept if item.get("type") == "function_call_output"]
        assert outputs[:CALLS] == [scenario.log_text(n) for n in range(CALLS)]
        session.sessions.close()
        again = CtxgcSession(inner("agents.db"), context_limit=LIMIT, store=store)
        scenario.closed_later(again.sessions)
        assert asyncio.run(run(server, again, "Still there?", kind)) == "Still here."
        assert server.refusals == []


def test_items_that_did_not_change_are_the_same_objects() -> None:
    session = CtxgcSession(SQLiteSession("one"), context_limit=LIMIT, store="memory:")
    items = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    view = session._view(items, "", Agent(name="reader"))
    assert all(shown is given for shown, given in zip(view, items, strict=True))
    session.sessions.close()
