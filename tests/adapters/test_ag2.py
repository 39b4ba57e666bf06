"""AG2 with the middleware and with the compaction strategy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2", reason="python -m tools.adapters run ag2")

from ag2 import Agent, KnowledgeConfig
from ag2.compact import CompactTrigger
from ag2.config import OpenAIConfig
from ag2.context import ConversationContext
from ag2.events import ModelRequest, ModelResponse, TextInput, UsageEvent
from ag2.events.types import Usage
from ag2.knowledge import EventLogWriter, MemoryKnowledgeStore
from ag2.stream import MemoryStream
from ag2.tools import tool

from ctxgc.adapters.ag2 import CtxgcCompact, CtxgcViews
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, LIMIT, MODEL, REQUEST, Logs, strict_server
from tools.ag2_verifier import on_page, statistics

pytestmark = pytest.mark.filterwarnings("default")


def agent(server: Any, gc: Any, **more: Any) -> Agent:
    logs = Logs(gc and gc.sessions)

    @tool
    def read_log(number: int) -> str:
        """Read a log."""
        return logs.read_log(number)

    config = OpenAIConfig(MODEL, api_key="any", base_url=server.openai_base_url, max_retries=0)
    tools = [read_log, *(gc.tools() if gc else [])]
    middleware = [gc] if isinstance(gc, CtxgcViews) else []
    return Agent("reader", config=config, tools=tools, middleware=middleware, **more)


def ask(made: Agent, text: str, stream: MemoryStream | None = None) -> str:
    return str(asyncio.run(made.ask(text, stream=stream or MemoryStream())).body)


def told(stream: MemoryStream) -> str:
    return str([event.to_dict() for event in asyncio.run(stream.history.get_events())])


def restored(stream: MemoryStream) -> MemoryStream:
    """Return a stream of the same id, with the events as AG2 writes them to its log and reads them again."""

    async def moved() -> MemoryStream:
        log = EventLogWriter(MemoryKnowledgeStore())
        await log.persist(stream.id, await stream.history.get_events())
        again = MemoryStream(id=stream.id)
        await again.history.replace(await log.load(stream.id))
        return again

    return asyncio.run(moved())


def test_an_async_run_of_sixty_calls_fits_recalls_and_continues_from_its_stream(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(Exception, lambda: ask(agent(server, None), REQUEST))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        gc = CtxgcViews(**options)
        stream = MemoryStream()
        assert ask(agent(server, gc), REQUEST, stream) == ANSWER
        scenario.check_run(server)
        assert "log 9 step 3" in told(stream)
        gc.sessions.close()
        again = CtxgcViews(**options)
        assert ask(agent(server, again), "Still there?", restored(stream)) == "Still here."
        assert again.sessions.session().session_id == str(stream.id)
        assert server.refusals == []
        again.sessions.close()


def test_an_overflow_is_answered_with_a_collection_and_asked_again() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcViews(context_limit=200_000, store="memory:")
        assert ask(agent(server, gc), REQUEST) == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}


def test_the_persistent_history_is_the_view_and_the_stream_continues_with_it(tmp_path: Any) -> None:
    options: dict[str, Any] = {"context_limit": 200_000, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    log = MemoryKnowledgeStore()

    def knowledge(gc: CtxgcCompact) -> KnowledgeConfig:
        trigger = CompactTrigger(max_tokens=LIMIT)
        return KnowledgeConfig(log, expose_tool=False, compact=gc, compact_trigger=trigger)

    with strict_server(limit=200_000, recall=False) as server:
        gc = CtxgcCompact(target_tokens=LIMIT, **options)
        stream = MemoryStream()
        made = agent(server, gc, knowledge=knowledge(gc))
        assert ask(made, REQUEST, stream) == "done"
        kept = told(stream)
        assert REQUEST in kept
        assert "log 9 step 3" not in kept
        assert len(asyncio.run(log.list("/log"))) >= 2
        gc.sessions.close()
        again = CtxgcCompact(target_tokens=LIMIT, **options)
        made = agent(server, again, knowledge=knowledge(again))
        assert ask(made, "Still there?", restored(stream)) == "Still here."
        assert server.refusals == []
        assert server.requests[-1].tokens <= LIMIT + 1_000
        again.sessions.close()


def test_what_did_not_change_is_the_same_event_and_the_end_of_the_stream_stays() -> None:
    gc = CtxgcViews(context_limit=LIMIT, store="memory:")
    events = [ModelRequest([TextInput(REQUEST)]), ModelResponse(), UsageEvent(Usage(), kind="llm")]
    context = ConversationContext(MemoryStream())
    view = gc.view(gc.take(events, context), events)
    assert all(shown is given for shown, given in zip(view, events, strict=True))


def test_the_statistics_on_the_page_are_those_that_the_verifier_prints() -> None:
    assert on_page() == statistics()
