"""Thinking over Anthropic's official SDK against the strict server: no collection ends in a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from ctxgc import AsyncSession, GCConfig, Session
from ctxgc.client import AsyncChatClient, ChatClient
from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall, Turn

Json = dict[str, Any]

# The SDK warns of older models, and of thinking that is `enabled` on newer ones.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:.*thinking.*:UserWarning"
)

LIMIT = 6_000
CONFIG = GCConfig(preserve_recent_turns=1, recent_messages=4, recent_user_messages=1)
MODELS = ("claude-sonnet-4-5", "claude-opus-5-5", "a-model-of-ours")
THINKING: dict[str, Json] = {
    "enabled": {"type": "enabled", "budget_tokens": 1_024},
    "adaptive": {"type": "adaptive"},
}
TOOL = {
    "name": "read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
SYSTEM = "You read files."


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}: line {n} is about value_{len(path)}_{n}" for n in range(40))


def script(rounds: int) -> Iterator[Turn]:
    """Yield a model that thinks before every answer, calls two tools at once, and stops now and then."""
    for number in range(rounds):
        calls = tuple(ToolCall("read", {"path": f"f{number}_{n}.py"}) for n in range(2))
        if number % 7 == 6:
            yield Turn(text=f"Part {number} is done.", thinking=f"I am through with {number}.")
        else:
            yield Turn(thinking=f"I must look at {number}.", tool_calls=calls)


class Rounds:
    """A strict server whose model goes on until enough collections have run."""

    def __init__(self) -> None:
        self._turns = script(1_000_000)
        self.model = ScriptedModel(then=self._next)

    def _next(self, _: RecordedRequest) -> Turn:
        return next(self._turns)


def options(model: str) -> Json:
    return {"context_limit": LIMIT, "model": model, "config": CONFIG, "store": "memory:"}


def fields(model: str, thinking: str) -> Json:
    return {
        "model": model, "max_tokens": 2_000, "thinking": THINKING[thinking], "tools": [TOOL],
        "system": SYSTEM,
    }  # fmt: skip


def kept(message: Any) -> Json:
    return {"role": "assistant", "content": [block.to_dict() for block in message.content]}


def results(message: Any) -> Json:
    """Return the message that answers all calls of an answer, or what the user says next."""
    calls = [block for block in message.content if block.type == "tool_use"]
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": read(call.input["path"])}
        for call in calls
    ]
    return {"role": "user", "content": blocks or "Go on."}


def plain(server: StrictServer, model: str, thinking: str, *, streams: bool, most: int) -> int:
    """Run an agent on `Session` and the SDK until it has collected so often; return how often it thought."""
    sdk = anthropic.Anthropic(base_url=server.base_url, api_key="any", max_retries=0)
    with sdk, Session(**options(model)) as session:
        session.set_system(SYSTEM)
        session.set_tools([TOOL])
        session.append({"role": "user", "content": "Read all."})
        while len(session.gc_history) < most:
            given = {**fields(model, thinking), "messages": session.messages()}
            if streams:
                with sdk.messages.stream(**given) as stream:
                    answer: Any = stream.get_final_message()
            else:
                answer = sdk.messages.create(**given)
            session.append(kept(answer))
            session.append(results(answer))
        return _thoughts(session.view())


def in_loop(server: StrictServer, model: str, thinking: str, *, streams: bool, most: int) -> int:
    """Do the same on `AsyncSession` and the SDK's client for loops."""

    async def agent() -> int:
        sdk = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="any", max_retries=0)
        async with sdk, AsyncSession(**options(model)) as session:
            await session.set_system(SYSTEM)
            await session.set_tools([TOOL])
            await session.append({"role": "user", "content": "Read all."})
            while len(session.gc_history) < most:
                given = {**fields(model, thinking), "messages": await session.messages()}
                if streams:
                    async with sdk.messages.stream(**given) as stream:
                        answer: Any = await stream.get_final_message()
                else:
                    answer = await sdk.messages.create(**given)
                await session.append(kept(answer))
                await session.append(results(answer))
            return _thoughts(await session.view())

    return asyncio.run(agent())


def client(server: StrictServer, model: str, thinking: str, *, streams: bool, most: int) -> int:
    """Do the same with `ChatClient`."""
    with ChatClient() as chat:
        chat.connect(**_connection(server, model, thinking))
        while len(chat.get_gc_history()) < most:
            chat.send_message("Go on.", on_text=_heard if streams else None)
        return _thoughts(chat.session.view())


def client_in_loop(
    server: StrictServer, model: str, thinking: str, *, streams: bool, most: int
) -> int:
    """Do the same with `AsyncChatClient`."""

    async def agent() -> int:
        async with AsyncChatClient() as chat:
            await chat.connect(**_connection(server, model, thinking))
            while len(await chat.get_gc_history()) < most:
                await chat.send_message("Go on.", on_text=_heard if streams else None)
            return _thoughts(await chat.session.view())

    return asyncio.run(agent())


AGENTS = {"plain": plain, "loop": in_loop, "client": client, "client in loop": client_in_loop}


def _connection(server: StrictServer, model: str, thinking: str) -> Json:
    return {
        **options(model), "provider": "anthropic", "base_url": server.base_url, "api_key": "any",
        "sdk_options": {"max_retries": 0}, "system": SYSTEM, "tools": [read], "tool_workers": 2,
        "options": {"thinking": THINKING[thinking]}, "max_rounds": 99,
    }  # fmt: skip


def _heard(_: str) -> None:
    """Listen to the pieces of an answer."""


def _thoughts(view: list[Json]) -> int:
    blocks = [b for m in view for b in m["content"] if isinstance(b, dict)]
    return sum(block["type"] == "thinking" for block in blocks)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("agent", AGENTS)
def test_no_collection_ends_in_a_refusal(
    agent: str, model: str, thinking: str, streams: bool
) -> None:
    with StrictServer(Rounds().model, context_limit=2 * LIMIT) as server:
        thoughts = AGENTS[agent](server, model, thinking, streams=streams, most=3)
    assert (server.refusals, server.script_errors) == ([], [])
    assert thoughts > 0


@pytest.mark.large
@pytest.mark.parametrize("agent", AGENTS)
def test_no_refusal_in_two_hundred_collections(agent: str) -> None:
    for model in MODELS:
        for thinking in THINKING:
            for streams in (False, True):
                with StrictServer(Rounds().model, context_limit=2 * LIMIT) as server:
                    AGENTS[agent](server, model, thinking, streams=streams, most=17)
                assert (server.refusals, server.script_errors) == ([], [])
