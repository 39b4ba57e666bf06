"""Mounts: further applications in the process of the proxy, each under a path of its own.

The command line puts them together, since doors do not import each other. An application is asked before the
proxy is, with the whole path, and decides itself who may call it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import anyio
import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ctxgc.errors import CtxgcError


class MountHost(msgspec.Struct, frozen=True, kw_only=True):
    """What an application may know of the process that it is served in.

    Args:
        port: where the server listens.
        hold: keeps requests away from a session of the store while the application changes it.
    """

    port: int
    hold: Callable[[str], AbstractContextManager[None]]


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """An application to be served under a path.

    Args:
        path: the first part of its paths, such as `/mcp`; what is under it goes to the application.
        build: makes it for the process that it is served in.
        said: what its callers should know, for the line with its address.
    """

    path: str
    build: Callable[[MountHost], ASGIApp]
    said: str = ""


class MountedApps:
    """The proxy with further applications in front of it; they live and end together."""

    def __init__(self, proxy: ASGIApp, mounts: Sequence[Mount], host: MountHost) -> None:
        self._proxy = proxy
        self._by_path: Mapping[str, ASGIApp] = {each.path: each.build(host) for each in mounts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application that has its path."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._app_of(scope["path"])(scope, receive, send)

    def _app_of(self, path: str) -> ASGIApp:
        found = (
            app for at, app in self._by_path.items() if path == at or path.startswith(f"{at}/")
        )
        return next(found, self._proxy)

    async def _live(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as group:
            lives = [_Life(app) for app in (self._proxy, *self._by_path.values())]
            for life in lives:
                group.start_soon(life.run)
            while True:
                said = await receive()
                for life in lives:
                    await life.tell(said)
                await send({"type": f"{said['type']}.complete"})
                if said["type"] == "lifespan.shutdown":
                    return


class _Life:
    """The lifespan of one application, led as a server leads it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()

    async def run(self) -> None:
        """Run it until it was told to shut down."""
        scope: dict[str, Any] = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        await self._app(scope, self._said.get, self._answers.put)

    async def tell(self, message: Message) -> None:
        """Pass a message on and return when the application has done what it says.

        Raises:
            CtxgcError: it could not.
        """
        await self._said.put(message)
        answer = await self._answers.get()
        if answer["type"].endswith(".failed"):
            raise CtxgcError(f"an application did not start: {answer.get('message', '')}")
