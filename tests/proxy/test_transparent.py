"""Unmodified SDKs get through the proxy what they get directly, and providers get the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from ctxgc.testing import RecordedRequest, StrictServer, ToolCall, Turn
from tests.proxy.places import KEY, anthropic_at, openai_at, proxied

SCRIPT = [
    Turn(text="héllo \N{SNOWMAN}"),
    Turn(
        thinking="hm", text="I look", tool_calls=(ToolCall("read", {"path": "ä.py"}, id="call_1"),)
    ),
    Turn(text="done"),
]
SAY = [{"role": "user", "content": "hi \N{GRINNING FACE} there"}]
CHAT_TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
CLAUDE_TOOL = {"name": "read", "input_schema": {"type": "object"}}
RESPONSES_TOOL = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object"},
    "strict": False,
}
CLAUDE = {"model": "claude-sonnet-5", "max_tokens": 4_000, "tools": [CLAUDE_TOOL]}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}


def chat(url: str) -> list[Any]:
    client = openai_at(url)
    asked: dict[str, Any] = {"model": "gpt-4o", "messages": SAY, "tools": [CHAT_TOOL]}
    whole = client.chat.completions.create(**asked)
    events = list(client.chat.completions.create(**asked, stream=True))
    return [whole.to_dict(), *(event.to_dict() for event in events)]


def chat_async(url: str) -> list[Any]:
    async def talk() -> list[Any]:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        asked: dict[str, Any] = {"model": "gpt-4o", "messages": SAY, "tools": [CHAT_TOOL]}
        async with client:
            whole = await client.chat.completions.create(**asked)
            stream = await client.chat.completions.create(**asked, stream=True)
            return [whole.to_dict(), *[event.to_dict() async for event in stream]]

    return asyncio.run(talk())


def responses(url: str) -> list[Any]:
    client = openai_at(url)
    asked: dict[str, Any] = {"model": "gpt-5", "input": SAY, "tools": [RESPONSES_TOOL]}
    whole = client.responses.create(**asked)
    events = list(client.responses.create(**asked, stream=True))
    return [whole.to_dict(), *(event.to_dict() for event in events)]


def claude(url: str) -> list[Any]:
    client = anthropic_at(url)
    asked: dict[str, Any] = {**CLAUDE, **THINKING, "messages": SAY}
    whole = client.messages.create(**asked, extra_headers={"anthropic-beta": "one,two"})
    with client.messages.stream(**asked) as stream:
        events = [event.to_dict() for event in stream]
    counted = client.messages.count_tokens(model=CLAUDE["model"], messages=SAY)
    return [whole.to_dict(), *events, counted.to_dict()]


def claude_async(url: str) -> list[Any]:
    async def talk() -> list[Any]:
        client = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
        async with client, client.messages.stream(**CLAUDE, messages=SAY) as stream:
            return [event.to_dict() async for event in stream]

    return asyncio.run(talk())


def models(url: str) -> list[Any]:
    return [openai_at(url).models.list().to_dict(), anthropic_at(url).models.list().to_dict()]


def seen(request: RecordedRequest) -> dict[str, Any]:
    own = ("host", "connection", "x-stainless-read-timeout")
    headers = {name: value for name, value in request.headers.items() if name not in own}
    return {"path": request.path, "raw": request.raw, "headers": headers}


@pytest.mark.parametrize("talk", [chat, chat_async, responses, claude, claude_async, models])
def test_an_sdk_gets_the_same_and_the_provider_gets_the_same_bytes(
    talk: Callable[[str], list[Any]],
) -> None:
    with StrictServer(SCRIPT) as direct:
        expected = talk(direct.base_url)
        asked = [seen(request) for request in direct.requests]
    with StrictServer(SCRIPT) as server, proxied(server) as proxy:
        assert talk(proxy.url) == expected
        assert [seen(request) for request in server.requests] == asked


def test_errors_of_the_provider_and_its_retry_hints_reach_the_sdk() -> None:
    with StrictServer(["fine"]) as server, proxied(server) as proxy:
        server.fail_next(529)
        with pytest.raises(anthropic.APIStatusError) as refused:
            anthropic_at(proxy.url).messages.create(**CLAUDE, messages=SAY)
        assert refused.value.status_code == 529
        server.fail_next(429, retry_after=0.01)
        client = openai_at(proxy.url, max_retries=2)
        said = client.chat.completions.create(model="gpt-4o", messages=SAY)
        assert said.choices[0].message.content == "fine"


@pytest.mark.parametrize("events", [0, 3])
def test_a_stream_that_breaks_off_breaks_off_for_the_client_too(events: int) -> None:
    def failure(url: str) -> tuple[type[BaseException], list[Any]]:
        got: list[Any] = []
        try:
            stream = openai_at(url).chat.completions.create(
                model="gpt-4o", messages=SAY, stream=True
            )
            got.extend(event.to_dict() for event in stream)
        except Exception as error:  # noqa: BLE001 - which one is what is compared
            return type(error), got
        return type(None), got

    with StrictServer(SCRIPT) as server:
        server.cut_next(events)
        expected = failure(server.base_url)
    with StrictServer(SCRIPT) as server, proxied(server) as proxy:
        server.cut_next(events)
        assert failure(proxy.url) == expected


def test_a_provider_that_is_down_is_an_error_of_the_provider_that_names_no_address() -> None:
    with StrictServer() as server, proxied(server) as proxy:
        server.close()
        with pytest.raises(anthropic.InternalServerError) as failed:
            anthropic_at(proxy.url).messages.create(**CLAUDE, messages=SAY)
        assert failed.value.body == {
            "type": "error",
            "error": {
                "type": "api_error",
                "message": "ctxgc: the provider could not be reached (ConnectError)",
            },
        }
        with pytest.raises(openai.InternalServerError):
            openai_at(proxy.url).models.list()


def test_a_base_url_without_v1_and_unknown_paths_are_passed_on_as_they_are() -> None:
    with StrictServer() as server, proxied(server) as proxy:
        for path in ("/models", "/v1/unknown?x=1", "/v1/files/é"):
            direct, through = (httpx2.get(f"{url}{path}") for url in (server.base_url, proxy.url))
            assert (through.status_code, through.content) == (direct.status_code, direct.content)
