"""Anthropic's SDK with the middleware, against the strict server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic, BadRequestError

from ctxgc.adapters.anthropic import CtxgcMessages
from ctxgc.testing import StrictServer
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, LIMIT, MODEL, REQUEST, Logs, strict_server

READ_LOG = {"name": "read_log", "description": "Read a log.", "input_schema": scenario.SCHEMA}


class Loop:
    """A loop as people write it: ask, run the calls, append, ask again; it keeps the whole history."""

    def __init__(
        self, client: Any, gc: CtxgcMessages | None, history: list[Any] | None = None
    ) -> None:
        self.client, self.gc = client, gc
        self.history: list[Any] = history or []
        self.logs = Logs(gc and gc.sessions)

    def fields(self) -> dict[str, Any]:
        tools = [READ_LOG, *(self.gc.tools() if self.gc else [])]
        return {"model": MODEL, "max_tokens": 100, "messages": self.history, "tools": tools}

    def take(self, message: Any) -> bool:
        content = [block.to_dict() for block in message.content]
        self.history.append({"role": "assistant", "content": content})
        results = [self.result(block) for block in message.content if block.type == "tool_use"]
        if results:
            self.history.append({"role": "user", "content": results})
        return bool(results)

    def result(self, block: Any) -> dict[str, Any]:
        reply = self.gc.answer(block) if self.gc else None
        if reply is not None:
            return dict(reply["content"][0])
        text = self.logs.read_log(scenario.number_of(block.input))
        return {"type": "tool_result", "tool_use_id": block.id, "content": text}

    def ask(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        while self.take(self.client.messages.create(**self.fields())):
            pass
        return str(self.history[-1]["content"][0]["text"])

    async def ask_async(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        while self.take(await self.client.messages.create(**self.fields())):
            pass
        return str(self.history[-1]["content"][0]["text"])


def client(server: StrictServer, gc: CtxgcMessages | None) -> Anthropic:
    if gc:
        scenario.closed_later(gc.sessions)
    sdk = Anthropic(base_url=server.base_url, api_key="any", middleware=[gc] if gc else [])
    return scenario.closed_later(sdk)  # type: ignore[no-any-return]


def test_a_loop_of_sixty_calls_fits_recalls_and_continues_after_a_restart(tmp_path: Any) -> None:
    with strict_server() as server:
        scenario.fails_with(BadRequestError, lambda: Loop(client(server, None), None).ask(REQUEST))
    store = f"sqlite:{tmp_path / 'stash.db'}"
    with strict_server() as server:
        gc = CtxgcMessages(context_limit=LIMIT, store=store, session_id="one")
        loop = Loop(client(server, gc), gc)
        assert loop.ask(REQUEST) == ANSWER
        scenario.check_run(server)
        gc.sessions.close()
        saved = json.loads(json.dumps(loop.history))
        again = CtxgcMessages(context_limit=LIMIT, store=store, session_id="one")
        assert Loop(client(server, again), again, saved).ask("Are you there?") == "Still here."
        assert server.refusals == []
        assert len(saved) == 2 * (scenario.CALLS + 3) + 2


def test_a_refusal_is_answered_with_a_collection_inside_one_create() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcMessages(context_limit=200_000, store="memory:")
        assert Loop(client(server, gc), gc).ask(REQUEST) == "done"
        assert {breach.rule for each in server.refusals for breach in each.breaches} == {"too_long"}
        assert len(server.requests) == scenario.CALLS + 1


def test_the_async_client_does_the_same() -> None:
    async def run(server: StrictServer, gc: CtxgcMessages) -> str:
        options: dict[str, Any] = {"base_url": server.base_url, "api_key": "any"}
        async with AsyncAnthropic(**options, middleware=[gc]) as sdk:
            return await Loop(sdk, gc).ask_async(REQUEST)

    with strict_server() as server:
        assert (
            asyncio.run(run(server, CtxgcMessages(context_limit=LIMIT, store="memory:"))) == ANSWER
        )
        scenario.check_run(server)
    with strict_server(recall=False) as server:
        assert (
            asyncio.run(run(server, CtxgcMessages(model="claude-opus-4-5", store="memory:")))
            == "done"
        )
        assert server.refusals


def test_a_stream_gets_the_view_too() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcMessages(context_limit=LIMIT, store="memory:")
        loop = Loop(client(server, gc), gc)
        loop.history.append({"role": "user", "content": REQUEST})
        while True:
            with loop.client.messages.stream(**loop.fields()) as stream:
                if not loop.take(stream.get_final_message()):
                    break
        assert server.refusals == []


def test_two_conversations_that_begin_alike_do_not_mix() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcMessages(context_limit=LIMIT, store="memory:")
        assert Loop(client(server, gc), gc).ask(REQUEST) == "done"
        Loop(client(server, gc), gc).ask(REQUEST)
        assert len(gc.sessions.session().segments()) == 1


def test_a_breakpoint_that_moves_does_not_take_back_what_came_in() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    with strict_server(recall=False) as server:
        gc = CtxgcMessages(context_limit=LIMIT, store="memory:")
        sdk = client(server, gc)
        first = {"role": "user", "content": [{"type": "text", "text": "Hello", **mark}]}
        plain = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
        said = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
        last = {"role": "user", "content": [{"type": "text", "text": "Bye", **mark}]}
        sdk.messages.create(model=MODEL, max_tokens=9, messages=[first])  # type: ignore[list-item]
        ids = gc.sessions.session().arrivals()
        sdk.messages.create(model=MODEL, max_tokens=9, messages=[plain, said, last])  # type: ignore[list-item]
        assert gc.sessions.session().arrivals()[:1] == ids
        assert server.requests[-1].messages == [plain, said, last]


def test_other_requests_pass_untouched() -> None:
    with strict_server() as server:
        gc = CtxgcMessages(context_limit=LIMIT, store="memory:")
        counted = client(server, gc).messages.count_tokens(
            model=MODEL, messages=[{"role": "user", "content": "Hello"}]
        )
        assert counted.input_tokens > 0
        with pytest.raises(Exception, match="no conversation"):
            gc.sessions.session()
