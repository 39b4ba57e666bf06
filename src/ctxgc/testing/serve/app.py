"""The HTTP service of the strict server. Only this module needs starlette and uvicorn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ctxgc.testing.breach import Format
from ctxgc.testing.serve.provider import ServerAnswer, StrictProvider
from ctxgc.testing.serve.reply import CREATED
from ctxgc.testing.serve.settings import Fault, FaultQueue

_POSTS: dict[str, Format] = {
    "/v1/chat/completions": "openai",
    "/v1/responses": "responses",
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "anthropic",
}
_ALL_BUT_END = -1


class App:
    """The strict provider over HTTP; `on_start` is called once requests are served."""

    def __init__(
        self, provider: StrictProvider, faults: FaultQueue, on_start: Callable[[], None]
    ) -> None:
        self._provider = provider
        self._faults = faults
        self._on_start = on_start
        self._closing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def build(self) -> Starlette:
        """Return the application with all its routes."""
        routes = [Route(path, self._post, methods=["POST"]) for path in _POSTS]
        routes.append(Route("/v1/models", self._models, methods=["GET"]))
        return Starlette(routes=routes, lifespan=self._lifespan)

    def close(self) -> None:
        """Stop the service and end all delays; callable from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._closing.set)

    async def closed(self) -> None:
        """Wait until `close` is called."""
        await self._closing.wait()

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._on_start()
        yield

    async def _post(self, request: Request) -> Response:
        path = request.url.path
        raw = await request.body()
        fault = self._faults.take()
        answer = self._provider.handle(_POSTS[path], path, raw, dict(request.headers), fault)
        if fault is not None and fault.delay:
            await self._delay(fault.delay)
        return _response(answer, fault)

    async def _delay(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return

    async def _models(self, request: Request) -> Response:
        names = self._provider.settings.models
        if "anthropic-version" in request.headers:
            return JSONResponse(_anthropic_models(names))
        models = [
            {"id": name, "object": "model", "created": CREATED, "owned_by": "ctxgc"}
            for name in names
        ]
        return JSONResponse({"object": "list", "data": models})


class AppServer(uvicorn.Server):
    """Serves an app until the app is closed, and then stops at once."""

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            app.build(),
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)
        self._app = app

    async def main_loop(self) -> None:
        """Wait for `close`, where uvicorn itself would poll ten times a second."""
        await self.on_tick(0)
        await self._app.closed()


class _Parts(Response):
    """Bytes sent part by part; a cut response lacks the end that HTTP requires."""

    def __init__(
        self, parts: tuple[bytes, ...], *, media_type: str, cut: bool, **more: Any
    ) -> None:
        super().__init__(media_type=media_type, **more)
        del self.headers["content-length"]
        self._parts = parts
        self._cut = cut

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        if not self._cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _response(answer: ServerAnswer, fault: Fault | None) -> Response:
    cut = fault.cut_after if fault is not None else None
    headers = dict(answer.headers)
    if answer.events:
        events = answer.events if cut is None else answer.events[:cut]
        return _Parts(events, media_type="text/event-stream", cut=cut is not None, headers=headers)
    whole = JSONResponse(answer.body, status_code=answer.status, headers=headers)
    if cut is None:
        return whole
    half = bytes(whole.body)[:_ALL_BUT_END]
    return _Parts((half,), media_type="application/json", cut=True, headers=headers)


def _anthropic_models(names: tuple[str, ...]) -> dict[str, Any]:
    models = [
        {
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "2026-11-01T00:00:00Z",
            "lifecycle": "active",
        }
        for name in names
    ]
    return {"data": models, "has_more": False, "first_id": names[0], "last_id": names[-1]}
