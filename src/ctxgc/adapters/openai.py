"""OpenAI's SDK: a transport that sends the view in place of the history, and a `ContextBudget`.

client = OpenAI(http_client=DefaultHttpxClient(transport=CtxgcTransport(context_limit=128_000)))
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2

from ctxgc.adapters.request_body import Fitted, RequestBodies
from ctxgc.adapters.session_pool import SessionPool
from ctxgc.session import Format


class OpenAIRecall:
    """The recall tools of a transport, as requests of OpenAI list them."""

    def __init__(self, session_id: str | None, options: dict[str, Any]) -> None:
        self._bodies = RequestBodies(session_id, options)

    @property
    def sessions(self) -> SessionPool:
        """The sessions of the conversations, to pin, search and look at."""
        return self._bodies.sessions

    def tools(self, format: Format = "openai") -> list[dict[str, Any]]:  # noqa: A002
        """Return the recall tools for chat completions, or for `"responses"`."""
        return [tool.schema(format) for tool in self.sessions.recall_tools()]

    def answer(self, call: object) -> dict[str, Any] | None:
        """Return the message that replies to a call of `tools()`; None for another tool's call."""
        return self.sessions.session().answer(call)

    def _fit(self, request: httpx2.Request) -> Fitted | None:
        is_json = "json" in request.headers.get("content-type", "")
        if request.method != "POST" or not is_json:
            return None
        return self._bodies.fit(request.url.path, json.loads(request.content))


class CtxgcTransport(OpenAIRecall, httpx2.BaseTransport):
    """Collects before each request of `OpenAI`, and again when the API says that it is too long.

    Args:
        transport: what carries the requests; else the SDK's usual one.
        session_id: the conversation; without one, conversations are told apart by their first message.
        options: anything that `Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(
        self,
        transport: httpx2.BaseTransport | None = None,
        *,
        session_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(session_id, options)
        self._transport = transport or httpx2.HTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or what fits in its place."""
        request.read()
        fitted = self._fit(request)
        if fitted is None:
            return self._transport.handle_request(request)
        while True:
            response = self._transport.handle_request(_with_body(request, fitted.rendered()))
            if response.status_code < 400 or not fitted.recovered(
                response.status_code, response.read()
            ):
                return response

    def close(self) -> None:
        """Close the sessions and the connections."""
        self.sessions.close()
        self._transport.close()


class AsyncCtxgcTransport(OpenAIRecall, httpx2.AsyncBaseTransport):
    """The same for `AsyncOpenAI`; the event loop never waits for a collection."""

    def __init__(
        self,
        transport: httpx2.AsyncBaseTransport | None = None,
        *,
        session_id: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(session_id, options)
        self._transport = transport or httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or what fits in its place."""
        await request.aread()
        fitted = await asyncio.to_thread(self._fit, request)
        if fitted is None:
            return await self._transport.handle_async_request(request)
        while True:
            body = await asyncio.to_thread(fitted.rendered)
            response = await self._transport.handle_async_request(_with_body(request, body))
            if response.status_code < 400:
                return response
            answer = await response.aread()
            if not await asyncio.to_thread(fitted.recovered, response.status_code, answer):
                return response

    async def aclose(self) -> None:
        """Close the sessions and the connections."""
        await asyncio.to_thread(self.sessions.close)
        await self._transport.aclose()


def _with_body(request: httpx2.Request, body: dict[str, Any]) -> httpx2.Request:
    headers = [
        (name, value) for name, value in request.headers.raw if name.lower() != b"content-length"
    ]
    return httpx2.Request(
        request.method, request.url, headers=headers, extensions=request.extensions,
        content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
    )  # fmt: skip
