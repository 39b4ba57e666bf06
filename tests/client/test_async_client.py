"""AsyncChatClient: a conversation that never blocks the loop of its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from ctxgc.client import AsyncChatClient, ChatClient
from ctxgc.errors import ClientError, InputError
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.client.talk import LIMIT, PROVIDERS, read, roles, settings


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(then="yes")


@pytest.fixture
def server(model: ScriptedModel) -> Iterator[StrictServer]:
    with StrictServer(model, context_limit=LIMIT, count_output=False) as running:
        yield running
        assert running.script_errors == []


def called(*names: str) -> Turn:
    return Turn(tool_calls=tuple(ToolCall(name, {"path": f"{name}.py"}) for name in names))


def results(client: AsyncChatClient) -> list[str]:
    """Return what the tools answered."""
    parts = [part for message in client.session.history for part in message.parts]
    return [part.text for part in parts if part.kind == "tool_result"]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_parallel_tools_of_both_kinds_are_run_and_the_text_is_streamed(
    server: StrictServer, model: ScriptedModel, provider: str, streams: bool
) -> None:
    model.extend([called("read", "fetch"), "all done"])
    threads: dict[str, int] = {}

    async def fetch(path: str) -> str:
        """Fetch a page."""
        threads["fetch"] = threading.get_ident()
        await asyncio.sleep(0)
        return f"page {path}"

    def heard(piece: str) -> None:
        threads["text"] = threading.get_ident()
        pieces.append(piece)

    async def run() -> list[str]:
        async with AsyncChatClient() as client:
            await client.connect(**settings(server, provider, tools=[read, fetch], tool_workers=2))
            reply = await client.send_message("Look", on_text=heard if streams else None)
            assert (reply, reply.rounds) == ("all done", 2)
            return results(client)

    pieces: list[str] = []
    assert asyncio.run(run()) == ["read.py:0\nread.py:1\nread.py:2", "page fetch.py"]
    assert "".join(pieces) == ("all done" if streams else "")
    assert set(threads.values()) == {threading.get_ident()}
    assert server.refusals == []


def test_tools_that_are_coroutines_run_at_the_same_time(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([called("left", "right"), "met"])

    async def run() -> str:
        here, there = asyncio.Event(), asyncio.Event()

        async def left(path: str) -> str:
            here.set()
            await there.wait()
            return path

        async def right(path: str) -> str:
            there.set()
            await here.wait()
            return path

        async with AsyncChatClient() as client:
            await client.connect(**settings(server, tools=[left, right], tool_workers=2))
            return await asyncio.wait_for(client.send_message("Meet"), 60)

    assert asyncio.run(run()) == "met"


def test_the_conversation_runs_in_a_thread_and_so_do_plain_tools(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([called("look"), "done"])
    seen: set[int] = set()

    def look(path: str) -> str:
        seen.add(threading.get_ident())
        return path

    async def run() -> None:
        async with AsyncChatClient() as client:
            await client.connect(**settings(server, tools=[look]))
            await client.send_message("Look")

    asyncio.run(run())
    assert len(seen) == 1
    assert threading.get_ident() not in seen


def test_a_tool_may_use_the_session_and_start_a_subagent(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([called("delegate"), "of the subagent", "of the agent"])

    async def run() -> tuple[str, list[str]]:
        client = AsyncChatClient()

        async def delegate(path: str) -> str:
            """Let somebody else look."""
            assert (await client.session.usage()).total_tokens > 0
            with pytest.raises(ClientError, match="waits for the coroutine"):
                await client.send_message("No")
            return await client.spawn_subagent(f"look at {path}")

        async with client:
            await client.connect(**settings(server, tools=[delegate]))
            reply = await client.send_message("Look")
            return reply, results(client)

    assert asyncio.run(run()) == ("of the agent", ["of the subagent"])


def test_its_own_method_as_a_tool_counts_the_depth(
    server: StrictServer, model: ScriptedModel
) -> None:
    task = ToolCall("spawn_subagent", {"task": "look"})
    model.extend([task, "of the subagent", "of the agent"])

    async def run() -> str:
        client = AsyncChatClient()
        async with client:
            await client.connect(**settings(server, tools=[client.spawn_subagent]))
            return await client.send_message("Look")

    assert asyncio.run(run()) == "of the agent"


def test_a_cancelled_message_drops_the_answer_and_can_be_resumed(
    server: StrictServer, model: ScriptedModel
) -> None:
    asked, go = threading.Event(), threading.Event()

    def slow(_: Any) -> str:
        asked.set()
        assert go.wait(60)
        return "too late"

    model.extend([slow, "in time"])

    async def run() -> tuple[str, list[str]]:
        async with AsyncChatClient() as client:
            await client.connect(**settings(server))
            sending = asyncio.create_task(client.send_message("Hello"))
            await asyncio.to_thread(asked.wait, 60)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            assert roles(await client.session.view()) == ["user"]
            go.set()
            return await client.resume(), roles(await client.session.view())

    assert asyncio.run(run()) == ("in time", ["user", "assistant"])


def test_a_message_that_is_cancelled_in_a_tool_leaves_a_valid_history_and_asks_no_more(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([called("wait_long", "read"), "never asked", "again"])

    async def run() -> list[str]:
        begun, cut = asyncio.Event(), asyncio.Event()

        async def wait_long(path: str) -> str:
            begun.set()
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                cut.set()
                raise
            return path

        async with AsyncChatClient() as client:
            await client.connect(**settings(server, tools=[wait_long, read]))
            sending = asyncio.create_task(client.send_message("Hello"))
            await begun.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await cut.wait()
            assert await client.resume() == "never asked"
            return roles(await client.session.view())

    assert asyncio.run(run()) == ["user", "assistant", "tool", "tool", "assistant"]
    assert server.refusals == []


def test_what_a_callback_raises_reaches_the_caller(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend(["one two three", "one two three"])

    async def run() -> str:
        async def heard(piece: str) -> None:
            raise RuntimeError(f"no more than {piece}")

        async with AsyncChatClient() as client:
            await client.connect(**settings(server))
            with pytest.raises(RuntimeError, match="no more than"):
                await client.send_message("Count", on_text=heard)
            return await client.send_message("Count")

    assert asyncio.run(run()) == "one two three"


def test_the_threshold_is_told_in_the_loop(server: StrictServer) -> None:
    told: list[tuple[float, int]] = []

    def warned(percent: float, threshold: float) -> None:
        told.append((threshold, threading.get_ident()))
        assert percent >= threshold

    async def run() -> None:
        async with AsyncChatClient() as client:
            await client.connect(**settings(server))
            while not told:
                await client.send_message("a line of text " * 300, on_gc_threshold=warned)
            assert len(await client.get_gc_history()) > 0
            assert (await client.manual_gc()).plugin_name == "gc_mark_sweep"

    asyncio.run(run())
    assert told == [(80.0, threading.get_ident())]


@pytest.mark.parametrize("sdk", [anthropic.AsyncAnthropic, openai.AsyncOpenAI])
def test_a_client_of_the_sdk_for_loops_is_refused_by_name(sdk: type[Any]) -> None:
    with pytest.raises(InputError, match=r"sdk cannot be an Async\w+.*AsyncChatClient"):
        ChatClient().connect(model="gpt-4o", sdk=sdk(api_key="any"), store="memory:")


def test_a_client_that_is_not_connected_says_so() -> None:
    async def run() -> None:
        client = AsyncChatClient()
        with pytest.raises(ClientError, match="not connected"):
            await client.send_message("Hello")
        with pytest.raises(ClientError, match="not connected"):
            print(client.session)
        await client.close()

    asyncio.run(run())
