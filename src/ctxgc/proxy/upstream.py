"""Upstream: a request on its way to the provider and the answer on its way back, byte for byte.

Headers are passed on as they came, except those that belong to one connection. Redirects are not followed.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping

import httpx2
import msgspec

from ctxgc.errors import CtxgcError
from ctxgc.proxy.options import Provider

CONNECT_SECONDS = 30.0
TOKEN_HEADER = "x-ctxgc-token"  # noqa: S105 (its name, not its value)
_OWN = "x-ctxgc-"
_OF_A_CONNECTION = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
        "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip

RawHeaders = list[tuple[bytes, bytes]]


class UpstreamError(CtxgcError):
    """The provider could not be reached; nothing of an answer has come."""

    code = "upstream_failed"


class CutError(CtxgcError):
    """The provider's answer ended before its end."""

    code = "upstream_cut"


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it is sent on: `body` whole, or in the pieces in which it comes."""

    provider: Provider
    method: str
    target: bytes
    headers: RawHeaders
    body: bytes | AsyncIterable[bytes]


class Incoming:
    """An answer: status, headers, and the bytes of its body as they come."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: RawHeaders = _without_connection(response.headers.raw)

    def header(self, name: str) -> str:
        """Return a header, or an empty text."""
        return str(self._response.headers.get(name, ""))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes, compressed if it is.

        Raises:
            CutError: it broke off.
        """
        try:
            async for chunk in self._response.aiter_raw():
                if chunk:
                    yield chunk
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise CutError("the provider's answer broke off") from error

    async def read(self) -> bytes:
        """Return the whole body as it came."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def close(self) -> None:
        """Let go of the connection; the provider sees that nobody reads any more."""
        await self._response.aclose()


class Upstream:
    """The providers that requests go to, over connections that are kept open."""

    def __init__(self, addresses: Mapping[Provider, str]) -> None:
        self._addresses = dict(addresses)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=limits,
            follow_redirects=False,
        )

    async def send(self, request: Outgoing) -> Incoming:
        """Send a request and return the answer as soon as its headers are there.

        Raises:
            UpstreamError: the provider cannot be reached.
        """
        url = httpx2.URL(self._addresses[request.provider] + request.target.decode("ascii"))
        sent = httpx2.Request(
            request.method, url, headers=request.headers, content=request.body or None
        )
        try:
            return Incoming(await self._client.send(sent, stream=True))
        except httpx2.HTTPError as error:
            kind = type(error).__name__
            raise UpstreamError(f"the provider could not be reached ({kind})") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def forwarded(headers: Iterable[tuple[bytes, bytes]], *, whole: bool) -> RawHeaders:
    """Return the headers of a client as the provider gets them; the length of a whole body is set anew."""
    left_out = {b"host", *((b"content-length",) if whole else ())}
    return [
        (name, value)
        for name, value in _without_connection(headers)
        if name.lower() not in left_out and not name.lower().startswith(_OWN.encode())
    ]


def _without_connection(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    given = list(headers)
    named = {
        word.strip().lower()
        for name, value in given
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    gone = named | {each.encode() for each in _OF_A_CONNECTION}
    return [(name, value) for name, value in given if name.lower() not in gone]
