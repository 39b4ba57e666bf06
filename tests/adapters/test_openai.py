"""OpenAI's SDK with the transport, and its tool runner with a budget, against the strict server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, BadRequestError, OpenAI
from openai.lib.responses_tool_runner import (
    RegisteredFunction,
    ResponsesToolRunner,
    ToolRunnerError,
)

from ctxgc.adapters.openai import AsyncCtxgcTransport, CtxgcTransport
from ctxgc.adapters.openai_budget import CtxgcBudget
from ctxgc.testing import StrictServer
from tests.adapters import scenario
from tests.adapters.scenario import (
    ANSWER,
    CHAT_TOOL,
    FUNCTION,
    LIMIT,
    MODEL,
    REQUEST,
    Logs,
    strict_server,
)

RESPONSES_TOOL: Any = {"type": "function", **FUNCTION, "strict": False}


class ChatLoop:
    """A loop over chat completions that keeps the whole history."""

    def __init__(self, client: Any, gc: Any, history: list[Any] | None = None) -> None:
        self.client, self.gc, self.logs = client, gc, Logs(gc and gc.sessions)
        self.history: list[Any] = history or []

    def fields(self) -> dict[str, Any]:
        tools = [CHAT_TOOL, *(self.gc.tools() if self.gc else [])]
        return {"model": MODEL, "messages": self.history, "tools": tools}

    def take(self, completion: Any) -> bool:
        message = completion.choices[0].message
        self.history.append(
            message.model_dump(exclude_none=True, exclude={"refusal", "annotations"})
        )
        for call in message.tool_calls or ():
            self.history.append(self.result(call))
        return bool(message.tool_calls)

    def result(self, call: Any) -> dict[str, Any]:
        reply: dict[str, Any] | None = self.gc.answer(call) if self.gc else None
        text = "" if reply else self.logs.read_log(scenario.number_of(call.function.arguments))
        return reply or {"role": "tool", "tool_call_id": call.id, "content": text}

    def ask(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        while self.take(self.client.chat.completions.create(**self.fields())):
            pass
        return str(self.history[-1]["content"])

    async def ask_async(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        while self.take(await self.client.chat.completions.create(**self.fields())):
            pass
        return str(self.history[-1]["content"])


class ResponsesLoop(ChatLoop):
    """The same over Responses, without state on the server."""

    def ask(self, text: str) -> str:
        self.history.append({"role": "user", "content": text})
        tools = [RESPONSES_TOOL, *(self.gc.tools("responses") if self.gc else [])]
        while True:
            answer = self.client.responses.create(
                model=MODEL, input=self.history, tools=tools, store=False
            )
            self.history += [item.model_dump(exclude_none=True) for item in answer.output]
            calls = [item for item in answer.output if item.type == "function_call"]
            self.history += [self.output(call) for call in calls]
            if not calls:
                return str(answer.output_text)

    def output(self, call: Any) -> dict[str, Any]:
        reply: dict[str, Any] | None = self.gc.answer(call) if self.gc else None
        text = "" if reply else self.logs.read_log(scenario.number_of(call.arguments))
        return reply or {"type": "function_call_output", "call_id": call.call_id, "output": text}


def client(server: StrictServer, gc: CtxgcTransport | None) -> OpenAI:
    http = httpx2.Client(transport=gc) if gc else None
    sdk = OpenAI(base_url=server.openai_base_url, api_key="any", http_client=http)
    return scenario.closed_later(sdk)  # type: ignore[no-any-return]


@pytest.mark.parametrize("loop_of", [ChatLoop, ResponsesLoop])
def test_a_loop_of_sixty_calls_fits_recalls_and_continues_after_a_restart(
    loop_of: Callable[..., ChatLoop], tmp_path: Any
) -> None:
    with strict_server() as server:
        scenario.fails_with(
            BadRequestError, lambda: loop_of(client(server, None), None).ask(REQUEST)
        )
    options: dict[str, Any] = {
        "context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}", "session_id": "one"
    }  # fmt: skip
    with strict_server() as server:
        with CtxgcTransport(**options) as gc:
            loop = loop_of(client(server, gc), gc)
            assert loop.ask(REQUEST) == ANSWER
            scenario.check_run(server)
        saved = json.loads(json.dumps(loop.history))
        with CtxgcTransport(**options) as again:
            assert loop_of(client(server, again), again, saved).ask("Still?") == "Still here."
        assert server.refusals == []


@pytest.mark.parametrize("loop_of", [ChatLoop, ResponsesLoop])
def test_a_refusal_is_answered_with_a_collection_inside_one_create(
    loop_of: Callable[..., ChatLoop],
) -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcTransport(context_limit=200_000, store="memory:")
        assert loop_of(client(server, gc), gc).ask(REQUEST) == "done"
        assert {breach.rule for each in server.refusals for breach in each.breaches} == {"too_long"}
        assert len(server.requests) == scenario.CALLS + 1


def test_the_async_client_does_the_same() -> None:
    async def run(server: StrictServer, limit: int) -> str:
        gc = AsyncCtxgcTransport(context_limit=limit, store="memory:")
        http = httpx2.AsyncClient(transport=gc)
        async with AsyncOpenAI(
            base_url=server.openai_base_url, api_key="any", http_client=http
        ) as sdk:
            return await ChatLoop(sdk, gc).ask_async(REQUEST)

    with strict_server() as server:
        assert asyncio.run(run(server, LIMIT)) == ANSWER
        scenario.check_run(server)
    with strict_server(recall=False) as server:
        assert asyncio.run(run(server, 200_000)) == "done"
        assert server.refusals


def test_a_request_whose_history_is_on_the_server_passes_untouched() -> None:
    with strict_server(recall=False, calls=0) as server:
        gc = CtxgcTransport(context_limit=LIMIT, store="memory:")
        sdk = client(server, gc)
        first = sdk.responses.create(model=MODEL, input="Hello")
        sdk.responses.create(
            model=MODEL, input=[{"role": "user", "content": "Bye"}], previous_response_id=first.id
        )
        assert server.requests[-1].messages == [{"role": "user", "content": "Bye"}]


BYTES = 12_000


def runner(gc: CtxgcBudget | None) -> ResponsesToolRunner:
    logs = Logs()
    own = RegisteredFunction(
        tool=RESPONSES_TOOL, execute=lambda given: logs.read_log(scenario.number_of(given))
    )
    return ResponsesToolRunner(functions=[own, *(gc.functions() if gc else [])])


def test_the_tool_runner_drops_what_the_budget_decides_and_recalls_it() -> None:
    params: Any = {"model": MODEL, "input": [{"role": "user", "content": REQUEST}], "store": False}
    with strict_server() as server:
        with pytest.raises(ToolRunnerError):
            runner(None).run(client(server, None), params, max_steps=99)
        assert [each.breaches[0].rule for each in server.refusals] == ["too_long"]
    with strict_server() as server:
        gc = CtxgcBudget(BYTES, store="memory:")
        done = runner(gc).run(
            client(server, None), params, max_steps=99, context_budget=gc.budget()
        )
        assert done.output_text == ANSWER
        assert server.refusals == []
        assert all(REQUEST in scenario.sent(request) for request in server.requests)


def test_the_tool_runner_says_so_when_a_budget_cannot_be_met() -> None:
    params: Any = {
        "model": MODEL,
        "input": [{"role": "user", "content": "x" * 3_000}],
        "store": False,
    }
    gc = CtxgcBudget(2_000, store="memory:", context_limit=8_000)
    with strict_server() as server:
        sdk, own = client(server, None), runner(gc)
        with pytest.raises(ToolRunnerError, match="still exceeds"):
            own.run(sdk, params, max_steps=9, context_budget=gc.budget())
