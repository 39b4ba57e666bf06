"""The application: who may call, what the request is, and the answer as the provider gives it.

It speaks ASGI itself, so that nothing between the client and the provider holds bytes back.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import anyio
import msgspec
from anyio import to_thread
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ctxgc.errors import InputError
from ctxgc.gate import FIRST, caller_of
from ctxgc.proxy.board import SessionRow, rows_text
from ctxgc.proxy.collecting import Collecting, PreparedRequest
from ctxgc.proxy.dialect import Route, error_body, route_of, spent_refusal
from ctxgc.proxy.metrics import ProxyMetrics
from ctxgc.proxy.options import Provider
from ctxgc.proxy.recall_loop import MOST_ROUNDS, ClientReply, error_event, reply_for
from ctxgc.proxy.upstream import (
    TOKEN_HEADER,
    CutError,
    Incoming,
    Outgoing,
    RawHeaders,
    Upstream,
    UpstreamError,
    forwarded,
)
from ctxgc.proxy.usage import RaisedUsage, UsageReader
from ctxgc.session import Format, parse_overflow

_log = logging.getLogger("ctxgc.proxy")

METRICS = "/metrics"
SESSIONS = "/ctxgc/sessions"
COMPRESS, RETRIEVE = "/v1/compress", "/v1/retrieve/"
_BEARER = "bearer "
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
        client_seconds: how long a client may pause in the middle of one.
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
        client_seconds: float,
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
        self._client_seconds = client_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            with suppress(_GoneError):
                try:
                    await self._answer(scope, receive, send)
                except _SlowClientError:
                    headers = Headers(scope=scope)
                    provider = route_of(scope["method"], scope["path"], headers).provider
                    text = "ctxgc: the request stopped in the middle"
                    await _refused(provider, 408, text)(scope, receive, send)

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
        refusal = self._refusal(route.provider, headers, scope["path"])
        if refusal is not None:
            await refusal(scope, receive, send)
        elif scope["method"] == "GET" and scope["path"] == METRICS:
            rows = await self._rows(headers)
            text = self._metrics.text() + rows_text(rows)
            await Response(text, media_type=PROMETHEUS)(scope, receive, send)
        elif scope["method"] == "GET" and scope["path"] == SESSIONS:
            await self._show_sessions(headers, scope, receive, send)
        elif self._collecting is not None and scope["path"] == COMPRESS:
            await self._compress(self._collecting, headers, scope, receive, send)
        elif self._collecting is not None and scope["path"].startswith(RETRIEVE):
            await self._retrieve(self._collecting, headers, scope, receive, send)
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

    def _refusal(self, provider: Provider, headers: Headers, path: str) -> Response | None:
        """Return the answer to a request that may not come in."""
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _refused(provider, 421, "ctxgc: this proxy is not called by that Host")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return _refused(provider, 403, "ctxgc: this Origin may not call the proxy")
        if caller_of(self._tokens, _token(headers, path)) is None:
            return _refused(provider, 401, f"ctxgc: the proxy needs its token in {TOKEN_HEADER}")
        return None

    def _tenant(self, headers: Headers, path: str = "") -> str:
        return caller_of(self._tokens, _token(headers, path)) or FIRST

    # -- what gateways ask --------------------------------------------------------------------------

    async def _compress(
        self,
        collecting: Collecting,
        headers: Headers,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        body = await self._read(receive)
        try:
            if body is None:
                text = f"ctxgc: a request may have {self._most_bytes} bytes"
                answer = _refused("openai", 413, text)
            else:
                made = await to_thread.run_sync(
                    collecting.gateway.compress,
                    body,
                    dict(headers),
                    self._tenant(headers, COMPRESS),
                )
                answer = Response(msgspec.json.encode(made), media_type="application/json")
        except InputError as error:
            answer = _refused("openai", 400, f"ctxgc: {error.message}")
        await answer(scope, receive, send)

    async def _retrieve(
        self,
        collecting: Collecting,
        headers: Headers,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        hash_ = scope["path"].removeprefix(RETRIEVE)
        text = await to_thread.run_sync(
            collecting.gateway.retrieve, hash_, dict(headers), self._tenant(headers, RETRIEVE)
        )
        found = Response(
            msgspec.json.encode({"original_content": text}), media_type="application/json"
        )
        answer = _refused("openai", 404, "ctxgc: no session has this") if text is None else found
        await answer(scope, receive, send)

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
        call = _ClientCall(route, form, request, collecting)
        try:
            made, answer, refusal = await self._fitting(call, made)
        except UpstreamError as error:
            await self._unreachable(route, error)({"type": "http"}, _nothing, send)
            return
        if refusal is not None:
            await _write(answer, refusal.chunks(), send)
        elif made.recalls and answer.status == 200:
            tell = _Told(answer, send, _gauge(form, answer, made))
            again = partial(self._again, call, dict(headers), tenant)
            await self._recalling(call, made, answer, tell, again)
        else:
            reader = _reader(form, answer)
            chunks = _read_along(answer.chunks(), reader)
            if made.left_out and answer.status == 200:
                answer.headers = _without_length(answer)
                chunks = _gauged(chunks, _gauge(form, answer, made))
            await _write(answer, chunks, send)
            await _learn(collecting, made, answer, reader)

    async def _fitting(
        self, call: _ClientCall, made: PreparedRequest
    ) -> tuple[PreparedRequest, Incoming, _WholeRefusal | None]:
        """Return the provider's answer to a request, sent smaller if it was refused as too long.

        Raises:
            UpstreamError: the provider cannot be reached.
        """
        for number in range(MOST_RETRIES + 1):
            answer = await self._upstream.send(_sent(call.request, made))
            if answer.status not in OVERFLOW_STATUSES or number == MOST_RETRIES:
                break
            refusal = await _whole(answer)
            overflow = parse_overflow(answer.status, refusal.plain())
            again = (
                None
                if overflow is None
                else await to_thread.run_sync(call.collecting.relieved, made, overflow)
            )
            if again is None:
                self._metrics.note_answer(call.route.provider, answer.status)
                return made, answer, refusal
            made = again
        self._metrics.note_answer(call.route.provider, answer.status)
        return made, answer, None

    async def _again(
        self, call: _ClientCall, headers: dict[str, str], tenant: str, body: bytes
    ) -> tuple[PreparedRequest, Incoming] | None:
        """Return the answer to a request that goes on after recalls; None if it was refused."""
        made = await to_thread.run_sync(
            call.collecting.prepare, body, call.form, headers, tenant, False
        )
        try:
            made, answer, refusal = await self._fitting(call, made)
        except UpstreamError as error:
            _log.warning("%s: %s", call.route.provider, error.message)
            return None
        if refusal is None and answer.status == 200:
            return made, answer
        await answer.close()
        return None

    async def _recalling(
        self, call: _ClientCall, made: PreparedRequest, answer: Incoming, tell: _Told, again: _Again
    ) -> None:
        """Pass on an answer, with the calls of our tools in it answered here."""
        reply, collecting = reply_for(call.form), call.collecting
        try:
            while True:
                reader = _reader(call.form, answer)
                await tell.round_of(reply, answer, reader)
                ended = reply.end_round()
                await _learn(collecting, made, answer, reader)
                body = await to_thread.run_sync(collecting.answered, made, ended)
                if body is None or len(reply.rounds) >= MOST_ROUNDS:
                    break
                await answer.close()
                found = await again(body)
                if found is None:
                    await tell.failed(call.form, "ctxgc: the provider did not go on after a recall")
                    return
                made, answer = found
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(collecting.remember, made, reply.hidden())
            await tell.ended(reply)
        except CutError:
            _log.warning("the provider's answer broke off")
        finally:
            with anyio.CancelScope(shield=True):
                await answer.close()

    async def _ask(self, route: Route, request: Outgoing, send: Send) -> Incoming | None:
        """Return the provider's answer; if there is none, tell the client."""
        try:
            return await self._upstream.send(request)
        except UpstreamError as error:
            await self._unreachable(route, error)({"type": "http"}, _nothing, send)
            return None

    def _unreachable(self, route: Route, error: UpstreamError) -> Response:
        _log.warning("%s: %s", route.provider, error.message)
        return _refused(route.provider, 502, f"ctxgc: {error.message}")

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body of a request; None if it is too long.

        Raises:
            _SlowClientError: the client does not go on.
        """
        body = bytearray()

        async def next_part() -> Message:
            with anyio.move_on_after(self._client_seconds):
                return await receive()
            raise _SlowClientError

        async for piece in _pieces(next_part):
            body += piece
            if len(body) > self._most_bytes:
                return None
        return bytes(body)


def _token(headers: Headers, path: str) -> str:
    """Return the token that a caller shows; gateways have no header for it but that of their key."""
    said = headers.get(TOKEN_HEADER, "")
    key = headers.get("authorization", "")
    is_gateway = path == COMPRESS or path.startswith(RETRIEVE)
    is_bearer = key.lower().startswith(_BEARER)
    return key[len(_BEARER) :] if is_gateway and is_bearer and not said else said


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


def _sent(request: Outgoing, made: PreparedRequest) -> Outgoing:
    """Return a request as it goes out; an answer that is to be read here must not be compressed."""
    headers = request.headers
    if made.recalls or made.left_out:
        headers = [each for each in headers if each[0].lower() != b"accept-encoding"]
        headers.append((b"accept-encoding", b"identity"))
    return msgspec.structs.replace(request, body=made.body, headers=headers)


class _ClientCall(NamedTuple):
    """A request of a client: where it goes, its format, and how it is sent."""

    route: Route
    form: Format
    request: Outgoing
    collecting: Collecting


_Again = Callable[[bytes], Awaitable[tuple[PreparedRequest, Incoming] | None]]


class _Told:
    """What a client is told of an answer that is read here: a stream as it comes, else all at once."""

    def __init__(self, answer: Incoming, send: Send, gauge: RaisedUsage) -> None:
        self._send = send
        self._gauge = gauge
        self._is_stream = "event-stream" in answer.header("content-type")
        self._headers = _without_length(answer)
        self._has_begun = False
        self._body = b""

    async def round_of(self, reply: ClientReply, answer: Incoming, reader: UsageReader) -> None:
        """Pass on one answer of the provider."""
        pieces: list[bytes] = []
        if self._is_stream:
            await self._begin(200)
        async for chunk in answer.chunks():
            reader.feed(chunk)
            if self._is_stream:
                await self._say(reply.feed(chunk))
            else:
                pieces.append(chunk)
        if self._is_stream:
            await self._say(reply.rest())
        else:
            self._body = b"".join(pieces)
            reply.read(self._body)

    async def ended(self, reply: ClientReply) -> None:
        """Tell how it ends."""
        if self._is_stream:
            await self._say(reply.ending())
        else:
            await self._begin(200)
            await self._say(self._body if reply.is_plain else json.dumps(reply.body()).encode())
        await self._pass_on(self._gauge.end())
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def failed(self, form: Format, text: str) -> None:
        """Tell that it cannot go on."""
        if self._is_stream:
            await self._say(error_event(form, text))
        else:
            await self._begin(502)
            provider: Provider = "anthropic" if form == "anthropic" else "openai"
            await self._say(error_body(provider, 502, text))
        await self._pass_on(self._gauge.end())
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, status: int) -> None:
        if not self._has_begun:
            self._has_begun = True
            start = {"type": "http.response.start", "status": status, "headers": self._headers}
            await self._send(start)

    async def _say(self, piece: bytes) -> None:
        await self._pass_on(self._gauge.feed(piece))

    async def _pass_on(self, piece: bytes) -> None:
        if piece:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})


def _without_length(answer: Incoming) -> RawHeaders:
    return [each for each in answer.headers if each[0].lower() != b"content-length"]


def _gauge(form: Format, answer: Incoming, made: PreparedRequest) -> RaisedUsage:
    return RaisedUsage(form, answer.header("content-type"), made.left_out)


async def _gauged(chunks: AsyncIterator[bytes], gauge: RaisedUsage) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield gauge.feed(chunk)
    yield gauge.end()


def _reader(form: Format, answer: Incoming) -> UsageReader:
    return UsageReader(form, answer.header("content-type"), answer.header("content-encoding"))


async def _learn(
    collecting: Collecting, made: PreparedRequest, answer: Incoming, reader: UsageReader
) -> None:
    if answer.status == 200:
        # A client that has all it wants closes its connection, which is no reason not to learn.
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(collecting.learn, made, reader.finish())


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


class _SlowClientError(Exception):
    """The client stopped in the middle of a request."""


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
