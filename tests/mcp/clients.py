"""Clients for the tests: the official one, in this process or over a real wire."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

T = TypeVar("T")
Json = dict[str, Any]

MODES = ("2026-07-28", "legacy")
"""The two revisions: the newest, and the last one with a handshake (2025-11-25)."""

PATIENCE = 200.0
"""For how many seconds an answer may be away: less than pytest waits, for it says where."""


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work to its end, within a few minutes."""

    async def limited() -> T:
        with anyio.fail_after(PATIENCE):
            return await work()

    return anyio.run(limited)


async def call(client: Client, tool: str, **arguments: Any) -> Json:
    """Return the answer of a tool that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return answer(result)


async def fail(client: Client, tool: str, **arguments: Any) -> Json:
    """Return the error of a tool that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    error = answer(result)["error"]
    assert sorted(error) == ["code", "details", "hint", "message"]
    return error


def answer(result: CallToolResult) -> Json:
    """Return the data of a result, which its text repeats."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == result.structured_content
    return dict(result.structured_content or {})


def command(folder: Path, *more: str) -> list[str]:
    """Return the command that starts our server on a store in a folder."""
    store = f"json:{folder / 'store.json'}"
    return [
        sys.executable,
        "-m",
        "ctxgc.cli",
        "mcp",
        "--store",
        store,
        "--root",
        str(folder),
        *more,
    ]


def over_stdio(folder: Path, *more: str) -> StdioServerParameters:
    """Return what starts our server for the official client."""
    program, *arguments = command(folder, *more)
    return StdioServerParameters(command=program, args=arguments)


@contextmanager
def http_server(folder: Path, *more: str) -> Iterator[tuple[str, str]]:
    """Start our server over HTTP; yield its URL and the token of its first caller."""
    tokens = folder / "tokens"
    arguments = command(folder, "--http", "--port", "0", "--token-file", str(tokens), *more)
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, encoding="utf-8")
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+/mcp", said)
        assert found, said
        yield found[0], tokens.read_text(encoding="utf-8").split()[1]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@contextmanager
def http_client(token: str) -> Iterator[httpx2.AsyncClient]:
    """Yield an HTTP client that shows a token."""
    yield httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})


def over_http(url: str, client: httpx2.AsyncClient) -> Any:
    """Return the transport of the official client over HTTP."""
    return streamable_http_client(url, http_client=client)
