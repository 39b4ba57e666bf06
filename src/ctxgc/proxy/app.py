"""The application: who may call, what the request is, and the answer as the provider gives it.

It speaks ASGI itself, so that nothing between the client and the provider holds bytes back.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio import to_thread
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ctxgc.gate import FIRST, caller_of
from ctxgc.proxy.board import SessionRow, rows_text
from ctxgc.proxy.collecting import Collecting
from ctxgc.proxy.dialect import Route, error_body, route_of, spent_refusal
from ctxgc.proxy.metrics import ProxyMetrics
from ctxgc.proxy.options import Provider
from ctxgc.proxy.upstream import (
    TOKEN_HEADER,
    CutError,
    Incoming,
    Outgoing,
    Upstream,
    UpstreamError,
    forwarded,
)
from ctxgc.proxy.usage import UsageReader
from ctxgc.session import parse_overflow

_log = logging.getLogger("ctxgc.proxy")

METRICS = "/metrics"
SESSIONS = "/ctxgc/sessions"
PROMETHEUS = "text/plain; version=0.0.4"
MOST_RETRIES = 3
OVERFLOW_STATUSES = (400, 413, 422)


class ProxyApp:
    """Passes requests on to their providers.

    Args:
        upstream: where requests go.
        hosts: the names, with ports, that it may be called by.
        origins: web pages that may call it.
        tokens: the token of each caller; None admits everyone.
        most_bytes: how long a request with a history may be.
        collecting: reads requests into sessions; None passes everything through.
        metrics: counts answers; `/metrics` shows it.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        hosts: frozenset[str],
        origins: frozenset[str] = frozenset(),
        tokens: Mapping[str, str] | None = None,
        most_bytes: int,
        collecting: Collecting | None = None,
        metrics: ProxyMetrics,
    ) -> None:
        self._metrics = metrics
        self._upstream = upstream
        self._collecting = collecting
        self._hosts = hosts
        self._origins = origins
        self._tokens = tokens
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            with suppress(_GoneError):
                await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            said = await receive()
            if said["type"] == "lifespan.shutdown":
                await self._upstream.close()
                if self._collecting is not None:
                    await to_thread.run_sync(self._collecting.close)
            await send({"type": f"{said['type']}.complete"})
            if said["type"] == "lifespan.shutdown":
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        route = route_of(scope["method"], scope["path"], headers)
        refusal = self._refusal(route.provider, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif scope["method"] == "GET" and scope["path"] == METRICS:
            rows = await self._rows(headers)
            text = self._metrics.text() + rows_text(rows)
            await Response(text, media_type=PROMETHEUS)(scope, receive, send)
        elif scope["method"] == "GET" and scope["path"] == SESSIONS:
            await self._show_sessions(headers, scope, receive, send)
        elif route.kind == "other":
            await self._pass_on(route, scope, receive, send)
        else:
            await self._converse(route, scope, receive, send)

    async def _rows(self, headers: Headers) -> list[SessionRow]:
        """Return what is known of the caller's own sessions."""
        if self._collecting is None:
            return []
        return await to_thread.run_sync(self._collecting.board, self._tenant(headers))

    async def _show_sessions(
        self, headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer with what is known of the sessions; `?session=` names one of them."""
        wanted = QueryParams(scope.get("query_string", b"")).get("session")
        rows = [row for row in await self._rows(headers) if row.is_called(wanted)]
        body = json.dumps({"sessions": [row.to_dict() for row in rows]}).encode()
        await Response(body, media_type="application/json")(scope, receive, send)

    def _refusal(self, provider: Provider, headers: Headers) -> Response | None:
        """Return the answer to a request that may not come in."""
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _refused(provider, 421, "ctxgc: this proxy is not called by that Host")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return _refused(provider, 403, "ctxgc: this Origin may not call the proxy")
        if caller_of(self._tokens, headers.get(TOKEN_HEADER, "")) is None:
            return _refused(provider, 401, f"ctxgc: the proxy needs its token in {TOKEN_HEADER}")
        return None

    def _tenant(self, headers: Headers) -> str:
        return caller_of(self._tokens, headers.get(TOKEN_HEADER, "")) or FIRST

    # -- requests that are passed on in the pieces in which they come -------------------------------

    async def _pass_on(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        has_body = any(
            name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]
        )
        body = _pieces(receive) if has_body else b""
        request = _outgoing(route, scope, body, whole=not has_body)
        answer = await self._ask(route, request, send)
        if answer is not None:
            await _relay(answer, answer.chunks(), receive, send)

    # -- requests with a history --------------------------------------------------------------------

    async def _converse(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._read(receive)
        if body is None:
            text = f"ctxgc: a request may have {self._most_bytes} bytes"
            await _refused(route.provider, 413, text)(scope, receive, send)
            return
        request = _outgoing(route, scope, body, whole=True)

        async def ask() -> None:
            if self._collecting is None or route.format is None:
                answer = await self._ask(route, request, send)
                if answer is not None:
                    await _write(answer, answer.chunks(), send)
            else:
                await self._collect(route, request, body, Headers(scope=scope), send)

        await _while_connected(ask, receive)

    async def _collect(
        self, route: Route, request: Outgoing, body: bytes, headers: Headers, send: Send
    ) -> None:
        """Send a request with the view of its session, smaller if it was refused as too long."""
        collecting, form = self._collecting, route.format
        if collecting is None or form is None:
            return
        tenant = self._tenant(headers)
        compacts = route.kind == "compaction"
        made = await to_thread.run_sync(
            collecting.prepare, body, form, dict(headers), tenant, compacts
        )
        if made.outcome == "capped":
            await _spent(route.provider, made.reason)({"type": "http"}, _nothing, send)
            return
        if made.answer is not None:
            answered = Response(made.answer.body, media_type=made.answer.media_type)
            await answered({"type": "http"}, _nothing, send)
            return
        answer = await self._ask(route, _with_body(request, made.body), send)
        for _ in range(MOST_RETRIES):
            if answer is None or answer.status not in OVERFLOW_STATUSES:
                break
            refusal = await _whole(answer)
            overflow = parse_overflow(answer.status, refusal.plain())
            again = (
                None
                if overflow is None
                else await to_thread.run_sync(collecting.relieved, made, overflow)
            )
            if again is None:
                self._metrics.note_answer(route.provider, answer.status)
                await _write(answer, refusal.chunks(), send)
                return
            made = again
            answer = await self._ask(route, _with_body(request, made.body), send)
        if answer is None:
            return
        self._metrics.note_answer(route.provider, answer.status)
        kind, encoding = answer.header("content-type"), answer.header("content-encoding")
        reader = UsageReader(form, kind, encoding)
        await _write(answer, _read_along(answer.chunks(), reader), send)
        if answer.status == 200:
            # A client that has all it wants closes its connection, which is no reason not to learn.
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(collecting.learn, made, reader.finish())

    async def _ask(self, route: Route, request: Outgoing, send: Send) -> Incoming | None:
        """Return the provider's answer; if there is none, tell the client."""
        try:
            return await self._upstream.send(request)
        except UpstreamError as error:
            _log.warning("%s: %s", route.provider, error.message)
            refusal = _refused(route.provider, 502, f"ctxgc: {error.message}")
            await refusal({"type": "http"}, _nothing, send)
            return None

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body of a request; None if it is too long."""
        body = bytearray()
        async for piece in _pieces(receive):
            body += piece
            if len(body) > self._most_bytes:
                return None
        return bytes(body)


def _outgoing(
    route: Route, scope: Scope, body: bytes | AsyncIterator[bytes], *, whole: bool
) -> Outgoing:
    query = scope.get("query_string", b"")
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return Outgoing(
        provider=route.provider,
        method=scope["method"],
        target=path + (b"?" + query if query else b""),
        headers=forwarded(scope["headers"], whole=whole),
        body=body,
    )


def _with_body(request: Outgoing, body: bytes) -> Outgoing:
    return msgspec.structs.replace(request, body=body)


async def _read_along(chunks: AsyncIterator[bytes], reader: UsageReader) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        reader.feed(chunk)
        yield chunk


class _WholeRefusal:
    """A refusal that was read to its end, or to where it broke off."""

    def __init__(self, pieces: list[bytes], encoding: str, cut: CutError | None) -> None:
        self._pieces = pieces
        self._encoding = encoding
        self._cut = cut

    def plain(self) -> bytes:
        """Return what it says, as far as that can be read."""
        raw = b"".join(self._pieces)
        try:
            return zlib.decompress(raw, 47) if self._encoding in ("gzip", "deflate") else raw
        except zlib.error:
            return b""

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield it as it came."""
        for piece in self._pieces:
            yield piece
        if self._cut is not None:
            raise self._cut


async def _whole(answer: Incoming) -> _WholeRefusal:
    pieces: list[bytes] = []
    cut = None
    try:
        async for piece in answer.chunks():
            pieces += [piece]
    except CutError as error:
        cut = error
    return _WholeRefusal(pieces, answer.header("content-encoding"), cut)


def _refused(provider: Provider, status: int, text: str) -> Response:
    return Response(error_body(provider, status, text), status, media_type="application/json")


def _spent(provider: Provider, text: str) -> Response:
    status, body = spent_refusal(provider, f"ctxgc: {text}")
    # The official clients would ask again, and again in vain.
    hint = {"x-should-retry": "false"}
    return Response(body, status, hint, media_type="application/json")


async def _nothing() -> dict[str, Any]:
    return {"type": "http.disconnect"}


class _GoneError(Exception):
    """The client closed its connection."""


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise _GoneError
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


async def _relay(
    answer: Incoming, chunks: AsyncIterator[bytes], receive: Receive, send: Send
) -> None:
    await _while_connected(lambda: _write(answer, chunks, send), receive)


async def _while_connected(work: Any, receive: Receive) -> None:
    """Do some work, and stop when the client is gone."""
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        await work()
        group.cancel_scope.cancel()


async def _write(answer: Incoming, chunks: AsyncIterator[bytes], send: Send) -> None:
    """Write an answer as it comes; one that breaks off breaks off for the client too."""
    try:
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        )
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except CutError:
        _log.warning("the provider's answer broke off")
    finally:
        with anyio.CancelScope(shield=True):
            await answer.close()
