"""Serving over streamable HTTP: loopback first, every request checked before the SDK sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import anyio.to_thread
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ctxgc.mcp.callers import Callers

PATH = "/mcp"
CALLER = "ctxgc.caller"
MOST_BYTES = 4 << 20
MOST_DEPTH = 64
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

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
        callers: who may speak.
        port: where it listens; part of the Host and Origin that are allowed.
        hosts: the names that it may be called by.
        origins: further pages that may call it from a browser.
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
    """Lets nobody through with a foreign Host (421), a foreign Origin (403) or no known token (401)."""

    def __init__(
        self, app: ASGIApp, callers: Callers, hosts: frozenset[str], origins: frozenset[str]
    ) -> None:
        self._app = app
        self._callers = callers
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on with the name of its caller."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
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
        # The SDK binds its sessions and sealed state to this user, so that no caller takes another's.
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
        """Read a whole request before it is handed on."""
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
