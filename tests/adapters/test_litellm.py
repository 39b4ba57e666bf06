"""LiteLLM's SDK with the callback."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
pytest.importorskip("litellm", reason="python -m tools.adapters run litellm")

import litellm

from ctxgc.adapters.litellm import CtxgcGuardrail
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, CHAT_TOOL, LIMIT, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")


async def ask(server: Any, gc: CtxgcGuardrail | None, history: list[Any], text: str) -> str:
    logs = Logs(gc and gc.sessions)
    history.append({"role": "user", "content": text})
    tools = [CHAT_TOOL, *(gc.tools() if gc else [])]
    while True:
        done = await litellm.acompletion(
            model=f"openai/{MODEL}", messages=history, tools=tools, api_key="any",
            api_base=server.openai_base_url, max_retries=0,
        )  # fmt: skip
        message = done.choices[0].message
        history.append(
            message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
        )
        if not message.tool_calls:
            return str(message.content)
        for call in message.tool_calls:
            reply = gc.answer(call) if gc else None
            text = "" if reply else logs.read_log(scenario.number_of(call.function.arguments))
            history.append(reply or {"role": "tool", "tool_call_id": call.id, "content": text})


def run(server: Any, gc: CtxgcGuardrail | None, history: list[Any], text: str) -> str:
    litellm.callbacks = [gc] if gc else []
    try:
        return asyncio.run(ask(server, gc, history, text))
    finally:
        litellm.callbacks = []


def test_an_async_loop_of_sixty_calls_fits_recalls_and_continues_after_a_restart(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(
            litellm.ContextWindowExceededError, lambda: run(server, None, [], REQUEST)
        )
    options: dict[str, Any] = {
        "context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}", "session_id": "one"
    }  # fmt: skip
    history: list[Any] = []
    with strict_server() as server:
        gc = CtxgcGuardrail(**options)
        assert run(server, gc, history, REQUEST) == ANSWER
        scenario.check_run(server)
        gc.sessions.close()
        again = CtxgcGuardrail(**options)
        assert run(server, again, json.loads(json.dumps(history)), "Still?") == "Still here."
        assert server.refusals == []
        again.sessions.close()


def test_the_hook_of_the_proxy_returns_the_body_with_the_view() -> None:
    gc = CtxgcGuardrail(context_limit=LIMIT, store="memory:")
    data = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    assert asyncio.run(gc.async_pre_call_hook(None, None, data, "acompletion")) == data
    assert gc.sessions.session().usage().messages == 1
