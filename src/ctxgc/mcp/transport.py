"""Transports: stdin and stdout for one client, streamable HTTP for callers with a token.

Over stdio only the protocol reaches stdout; whatever else is printed goes to stderr. Over HTTP each caller
has a token and a context of its own, and every request is checked before the SDK sees it.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    jsonrpc_message_adapter,
)
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ctxgc.gate import LOOPBACK, caller_of
from ctxgc.mcp.service import ContextService

# -- Callers


class Callers:
    """Knows callers by their tokens, and opens the context of each at its first request.

    Args:
        tokens: the token of each caller; None admits everyone as `default`.
        open_service: opens the context of a caller.
    """

    def __init__(
        self, tokens: Mapping[str, str] | None, open_service: Callable[[str], ContextService]
    ) -> None:
        self._tokens = tokens
        self._open = open_service
        self._services: dict[str, ContextService] = {}
        self._lock = threading.Lock()

    def name_of(self, token: str) -> str | None:
        """Return the caller with this token, in constant time; None if there is none."""
        return caller_of(self._tokens, token)

    def service(self, name: str) -> ContextService:
        """Return the context of a caller."""
        with self._lock:
            if name not in self._services:
                self._services[name] = self._open(name)
            return self._services[name]

    def close(self) -> None:
        """Close every context that was opened."""
        for service in self._services.values():
            service.close()


# -- HTTP


PATH = "/mcp"
CALLER = "ctxgc.caller"
MOST_BYTES = 4 << 20
MOST_DEPTH = 64

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def http_app(
    server: Server[Any] | MCPServer[Any],
    callers: Callers,
    *,
    port: int,
    hosts: Iterable[str] = LOOPBACK,
    origins: Iterable[str] = (),
    most_bytes: int = MOST_BYTES,
    most_depth: int = MOST_DEPTH,
) -> ASGIApp:
    """Return an application that serves MCP at `/mcp` to known callers.

    Args:
        server: what answers.
        callers: who may call.
        port: where it listens; part of the allowed Host and Origin.
        hosts: the allowed host names.
        origins: further origins that may call it from a browser.
        most_bytes: how long a request may be.
        most_depth: how deeply its JSON may nest.
    """
    names = [f"{host}:{port}" for host in hosts]
    pages = [*(f"http://{name}" for name in names), *origins]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=pages
    )
    inner = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=most_bytes
    )
    depth = DepthLimit(AuthContextMiddleware(inner), most_bytes, most_depth)
    return Gate(depth, callers, frozenset(names), frozenset(pages))


class Gate:
    """Refuses requests with a foreign Host (421), a foreign Origin (403) or without a known token (401)."""

    def __init__(
        self, app: ASGIApp, callers: Callers, hosts: frozenset[str], origins: frozenset[str]
    ) -> None:
        self._app = app
        self._callers = callers
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with the name of its caller."""
        if scope["type"] == "lifespan":
            try:
                return await self._app(scope, receive, send)
            finally:
                self._callers.close()
        refusal = self._refusal(scope) if scope["type"] == "http" else _error(404, "not found")
        return await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _error(421, "this server is not called by that Host")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return _error(403, "this Origin may not call")
        kind, _, token = headers.get("authorization", "").partition(" ")
        name = self._callers.name_of(token.strip() if kind.lower() == "bearer" else "")
        if name is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="ctxgc"'}
            return _error(401, "a bearer token is needed", challenge)
        # The SDK binds its sessions and sealed state to this user, so that callers cannot use each other's.
        scope[CALLER] = name
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        scope["auth"] = AuthCredentials([])
        return None


class DepthLimit:
    """Refuses requests that are too long (413) or whose JSON nests too deeply (400)."""

    def __init__(self, app: ASGIApp, most_bytes: int, most_depth: int) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._most_depth = most_depth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read a whole request before passing it on."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._most_bytes:
                refusal = _error(413, f"a request may have {self._most_bytes} bytes")
                return await refusal(scope, receive, send)
        if await anyio.to_thread.run_sync(depth_of, bytes(body)) > self._most_depth:
            return await _error(400, "the JSON nests too deeply")(scope, receive, send)
        return await self._app(scope, _replay(bytes(body), receive), send)


def depth_of(data: bytes) -> int:
    """Return how deeply JSON nests; brackets inside strings do not count."""
    deepest = depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    error = {"code": "refused", "message": message, "hint": "", "details": {"status": status}}
    return JSONResponse({"error": error}, status, headers)


# -- Stdio


class ProtocolStdout:
    """The real stdout, reserved for the protocol.

    Once it is created, file descriptor 1 and `sys.stdout` lead to stderr, in this process and in the
    children that it starts. Create it before importing anything that might print.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._output: BinaryIO = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def text(self) -> io.TextIOWrapper:
        """Return the stream that carries the protocol."""
        return io.TextIOWrapper(self._output, encoding="utf-8", newline="\n")


def serve_stdio(server: Server[Any], wire: ProtocolStdout) -> None:
    """Serve one client until it closes its end."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        anyio.run(_serve, server, wire)


async def _serve(server: Server[Any], wire: ProtocolStdout) -> None:
    source = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace")
    refusals, refused = anyio.create_memory_object_stream[SessionMessage](math.inf)
    lines: Any = _CheckedLines(anyio.wrap_file(source), refusals.send_nowait)
    streams = stdio_server(lines, anyio.wrap_file(wire.text()))
    async with streams as (read, write), anyio.create_task_group() as group:

        async def refuse() -> None:
            async for message in refused:
                await write.send(message)

        group.start_soon(refuse)
        await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


class _CheckedLines:
    """The lines of a client; those that are no message are answered here, since the SDK drops them."""

    def __init__(
        self, source: anyio.AsyncFile[str], refuse: Callable[[SessionMessage], None]
    ) -> None:
        self._source = source
        self._refuse = refuse

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._source:
            if line.strip() and (refusal := _refusal(line)) is not None:
                self._refuse(SessionMessage(refusal))
            else:
                yield line


def _refusal(line: str) -> JSONRPCError | None:
    """Return the answer to a line that is not a message; None to one that is."""
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    else:
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        error = ErrorData(code=PARSE_ERROR, message="the line is not JSON")
        return JSONRPCError(jsonrpc="2.0", id=None, error=error)
    asked = said.get("id") if isinstance(said, dict) else None
    named = asked if isinstance(asked, int | str) and not isinstance(asked, bool) else None
    error = ErrorData(code=INVALID_REQUEST, message="the line is not a JSON-RPC 2.0 message")
    return JSONRPCError(jsonrpc="2.0", id=named, error=error)
