"""LangChain's agent, LangGraph's checkpointer and deepagents with the middleware."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langchain", reason="python -m tools.adapters run langchain")

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import ContextEditingMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from openai import BadRequestError

from ctxgc.adapters.langchain import CtxgcEdit, CtxgcMiddleware
from ctxgc.testing import StrictServer
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, CALLS, LIMIT, MODEL, REQUEST, Logs, strict_server

CONFIG: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": 500}


def model(server: StrictServer) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=server.openai_base_url, api_key="any", max_retries=0)


def agent(
    server: StrictServer, gc: Any, make: Callable[..., Any] = create_agent, **more: Any
) -> Any:
    logs = Logs(gc and gc.sessions)

    @tool
    def read_log(number: int) -> str:
        """Read a log."""
        return logs.read_log(number)

    return make(model=model(server), tools=[read_log], middleware=[gc] if gc else [], **more)


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def test_an_agent_of_sixty_calls_fits_recalls_and_continues_from_its_checkpoint(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(
            BadRequestError, lambda: agent(server, None).invoke(said(REQUEST), CONFIG)
        )
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    place = str(tmp_path / "graph.db")
    with strict_server() as server:
        gc = CtxgcMiddleware(**options)
        with SqliteSaver.from_conn_string(place) as saver:
            done = agent(server, gc, checkpointer=saver).invoke(said(REQUEST), CONFIG)
        assert done["messages"][-1].content == ANSWER
        assert [m.content for m in done["messages"][2:120:2]] == [
            scenario.log_text(n) for n in range(CALLS - 1)
        ]
        scenario.check_run(server)
        opened = gc.sessions.session().session_id
        gc.sessions.close()
        again = CtxgcMiddleware(**options)
        with SqliteSaver.from_conn_string(place) as saver:
            more = agent(server, again, checkpointer=saver).invoke(said("Still there?"), CONFIG)
        assert more["messages"][-1].content == "Still here."
        assert again.sessions.session().session_id == opened
        assert server.refusals == []


def test_an_overflow_is_answered_with_a_collection_and_asked_again() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcMiddleware(context_limit=200_000, store="memory:")
        done = agent(server, gc).invoke(said(REQUEST), CONFIG)
        assert done["messages"][-1].content == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}


@pytest.mark.parametrize("limit", [LIMIT, 200_000])
def test_the_async_agent_does_the_same(limit: int) -> None:
    with strict_server(recall=limit == LIMIT) as server:
        gc = CtxgcMiddleware(context_limit=limit, store="memory:")
        done = asyncio.run(agent(server, gc).ainvoke(said(REQUEST), CONFIG))
        assert done["messages"][-1].content == (ANSWER if limit == LIMIT else "done")
        assert bool(server.refusals) == (limit > LIMIT)


def test_a_context_edit_makes_it_fit_without_recall() -> None:
    with strict_server(recall=False) as server:
        edit = CtxgcEdit(context_limit=LIMIT, store="memory:")
        middleware = ContextEditingMiddleware(edits=[edit])
        middleware.sessions = edit.sessions
        done = agent(server, middleware).invoke(said(REQUEST), CONFIG)
        assert done["messages"][-1].content == "done"
        scenario.check_run(server, requests=CALLS + 1)
        assert "context_recall(" not in scenario.sent(server.requests[-1])


def test_a_deep_agent_takes_the_middleware_and_its_subagents_get_sessions_of_their_own() -> None:
    limit = 40_000  # its own prompt and tools take most of it
    with strict_server(recall=False, limit=limit) as server:
        gc = CtxgcMiddleware(context_limit=limit, store="memory:", recall=True)
        done = agent(server, gc, create_deep_agent).invoke(said(REQUEST), CONFIG)
        assert done["messages"][-1].content == "done"
        assert server.refusals == []
