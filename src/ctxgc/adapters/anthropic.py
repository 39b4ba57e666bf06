"""Anthropic's SDK: a middleware that sends the view in place of the history.

client = Anthropic(middleware=[CtxgcMessages(context_limit=200_000)])
"""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import APIRequest, APIResponse, AsyncAPIResponse, AsyncCallNext, CallNext, Middleware

from ctxgc.adapters.request_body import Fitted, RequestBodies
from ctxgc.adapters.session_pool import SessionPool


class CtxgcMessages(Middleware):
    """Collects before each `messages.create()`, and once more when the API says that it is too long.

    It works with `Anthropic` and `AsyncAnthropic`. Offer the model `tools()`, and reply to calls of them with
    `answer()`, and it can get back what left.

    Args:
        session_id: the conversation; without one, conversations are told apart by their first message.
        options: anything that `Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, session_id: str | None = None, **options: Any) -> None:
        self._bodies = RequestBodies(session_id, options)

    @property
    def sessions(self) -> SessionPool:
        """The sessions of the conversations, to pin, search and look at."""
        return self._bodies.sessions

    def tools(self) -> list[dict[str, Any]]:
        """Return the recall tools as `messages.create(tools=...)` takes them."""
        return [tool.schema("anthropic") for tool in self.sessions.recall_tools()]

    def answer(self, block: object) -> dict[str, Any] | None:
        """Return the message that replies to a `tool_use` block of `tools()`; None for another tool's."""
        return self.sessions.session().answer(block)

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        """Send one request of the synchronous client, and what fits in its place if it is refused."""
        fitted = self._fit(request)
        if fitted is None:
            return call_next(request)
        while True:
            response = call_next(request.copy(body=fitted.rendered()))
            if response.status_code < 400 or not fitted.recovered(
                response.status_code, response.read()
            ):
                return response

    async def handle_async(
        self, request: APIRequest, call_next: AsyncCallNext
    ) -> AsyncAPIResponse[Any]:
        """Send one request of the asynchronous client; the event loop never waits for a collection."""
        fitted = await asyncio.to_thread(self._fit, request)
        if fitted is None:
            return await call_next(request)
        while True:
            response = await call_next(request.copy(body=await asyncio.to_thread(fitted.rendered)))
            if response.status_code < 400:
                return response
            answer = await response.read()
            if not await asyncio.to_thread(fitted.recovered, response.status_code, answer):
                return response

    def _fit(self, request: APIRequest) -> Fitted | None:
        path = request.url.partition("?")[0]
        return self._bodies.fit(path, request.json) if request.method.lower() == "post" else None
