"""AsyncChatClient: a ChatClient for an event loop.

    async with AsyncChatClient() as client:
        await client.connect(model="claude-sonnet-4-5")
        print(await client.send_message("Hello"))

The conversation runs in a thread of its own: session, requests, and tools that are plain functions. The SDKs'
own asynchronous clients would not do: they prepare a request of 2,000 messages in the loop.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar, copy_context
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import msgspec

from ctxgc.budget import GCPolicy
from ctxgc.client.answer import Reply
from ctxgc.client.client import AnyTool, ChatClient, ClientSetup, SubagentResult
from ctxgc.client.conversation import Cancellation, OnThreshold
from ctxgc.client.provider import OnText
from ctxgc.client.tools import Tool, make_tool
from ctxgc.collector import GCResult
from ctxgc.config import GCConfig
from ctxgc.errors import ClientError
from ctxgc.session import AsyncSession, WorkThread, with_vocabulary
from ctxgc.strategies import GCPlugin

P = ParamSpec("P")
R = TypeVar("R")

# In a tool or a callback that a client waits for: that client.
_waiting: ContextVar[tuple[AsyncChatClient, ...]] = ContextVar("ctxgc_waiting", default=())


class _ClientInThread(ChatClient):
    """The client that the thread works with; what must be called in the loop, it calls there."""

    def __init__(self, outside: AsyncChatClient) -> None:
        super().__init__()
        self._outside = outside
        self._loop: asyncio.AbstractEventLoop | None = None
        self.session_in_loop: AsyncSession | None = None

    def begin(self, loop: asyncio.AbstractEventLoop, cancellation: Cancellation) -> None:
        """Work for a caller in this loop."""
        self._loop, self._cancellation = loop, cancellation

    def call_in_loop(self, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Call a function, or a coroutine function, in the loop of the caller and return its result."""
        if self._loop is None or self._cancellation is None:
            raise ClientError("the client has no event loop", hint="use it in a coroutine")
        awaited, loop = _awaited(function, *given, **more), self._loop
        context = copy_context()
        context.run(_waiting.set, (*_waiting.get(), self._outside))
        called = context.run(asyncio.run_coroutine_threadsafe, awaited, loop)
        return self._cancellation.wait_for(called)

    def _open(self, setup: ClientSetup) -> None:
        super()._open(setup)
        self.session_in_loop = AsyncSession.of(with_vocabulary(self.session))

    def _make_tool(self, tool: AnyTool, **given: Any) -> Tool:
        if isinstance(tool, Tool):
            return msgspec.structs.replace(tool, function=self._plain(tool.function))
        if isinstance(tool, Mapping):
            pair = (
                {**tool, "callable": self._plain(tool["callable"])} if "callable" in tool else tool
            )
            return make_tool(pair, **given)
        return make_tool(self._plain(tool), **given)

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function for the thread: one that calls a coroutine function calls it in the loop."""
        if getattr(function, "__self__", None) is self._outside:
            # The thread works for this very call: it must not wait for itself.
            return getattr(self, function.__name__)  # type: ignore[no-any-return]
        if not inspect.iscoroutinefunction(function):
            return function

        @functools.wraps(function)
        def called(**given: Any) -> Any:
            return self.call_in_loop(function, **given)

        return called


async def _awaited(function: Callable[..., Any], *given: Any, **more: Any) -> Any:
    found = function(*given, **more)
    return await found if inspect.isawaitable(found) else found


def _in_thread(
    method: Callable[Concatenate[ChatClient, P], R],
) -> Callable[Concatenate[AsyncChatClient, P], Coroutine[Any, Any, R]]:
    """Return the coroutine function that runs a method of `ChatClient` in the client's thread."""

    @functools.wraps(method)
    async def called(self: AsyncChatClient, /, *given: P.args, **more: P.kwargs) -> R:
        return await self._run(lambda client: method(client, *given, **more))

    return called


class AsyncChatClient:
    """A `ChatClient` whose methods are coroutines: same names, same arguments, same results, same errors.

    Tools may be coroutine functions, and so may `on_text` and `on_gc_threshold`: those run in the loop, tools
    that are plain functions in the thread. A call that is cancelled ends before the next request or tool; an
    answer that was on its way is dropped, and the history stays valid: `resume()` asks again.
    """

    def __init__(self) -> None:
        self._client = _ClientInThread(self)
        self._thread = WorkThread("ctxgc-client")

    async def _run(self, work: Callable[[ChatClient], R]) -> R:
        """Let the thread do something, and tell it when nobody waits for that any more."""
        client, cancellation = self._client, Cancellation()
        loop = asyncio.get_running_loop()

        def begun() -> R:
            client.begin(loop, cancellation)
            return work(client)

        if self in _waiting.get():
            raise ClientError(
                "the client waits for the coroutine that calls it",
                hint="a tool may use spawn_subagent() and the session",
            )
        try:
            return await self._thread.run(begun)
        except asyncio.CancelledError:
            cancellation.tell()
            raise

    connect = _in_thread(ChatClient.connect)

    async def send_message(
        self,
        text: str,
        *,
        on_gc_threshold: OnThreshold | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Send a message to the model, run the tools it calls, and return its final text.

        The callbacks, which may be coroutine functions, are called in the loop.
        """
        heard, warned = self._heard(on_text), self._heard(on_gc_threshold)
        return await self._run(
            lambda client: client.send_message(text, on_gc_threshold=warned, on_text=heard)
        )

    async def resume(
        self, *, on_gc_threshold: OnThreshold | None = None, on_text: OnText | None = None
    ) -> Reply:
        """Ask the model again without a new message: after an error or a cancelled call, for example."""
        heard, warned = self._heard(on_text), self._heard(on_gc_threshold)
        return await self._run(lambda client: client.resume(on_gc_threshold=warned, on_text=heard))

    async def spawn_subagent(
        self,
        task: str,
        profile: str | None = None,
        inline_config: Mapping[str, Any] | None = None,
    ) -> SubagentResult:
        """Give a task to a subagent with its own session and return its final text.

        A tool that is a coroutine function may call it; see `ChatClient.spawn_subagent`.
        """
        if self not in _waiting.get():
            return await self._run(
                lambda client: client.spawn_subagent(task, profile, inline_config)
            )
        thread = WorkThread("ctxgc-subagent")
        try:
            return await thread.run(
                lambda: self._client.spawn_subagent(task, profile, inline_config)
            )
        finally:
            thread.stop()

    async def add_tool(
        self,
        tool: AnyTool,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        policy: GCPolicy = GCPolicy.LOCKED,
    ) -> None:
        """Offer the model one more tool: a function or coroutine function, or a dict with one.

        See `ChatClient.add_tool`.
        """
        await self._run(
            lambda client: client.add_tool(
                tool, name=name, description=description, schema=schema, policy=policy
            )
        )

    async def set_gc_plugin(self, plugin: str | GCPlugin, config: GCConfig | None = None) -> None:
        """Use another strategy, and another configuration if one is given."""
        await self.session.set_gc_plugin(plugin, config)

    async def manual_gc(self) -> GCResult:
        """Collect now."""
        return await self.session.manual_gc()

    async def get_gc_history(self) -> list[GCResult]:
        """Return the results of all collections, oldest first."""
        return self.session.gc_history

    @property
    def session(self) -> AsyncSession:
        """The session of the conversation, for the loop; a tool may use it too."""
        if self._client.session_in_loop is None:
            raise ClientError("the client is not connected", hint="await connect(model=...) first")
        return self._client.session_in_loop

    async def close(self) -> None:
        """Close the session; a store or SDK client that was passed in as an object stays open."""
        await self._run(lambda client: client.close())

    def _heard(self, callback: Callable[..., object] | None) -> Callable[..., object] | None:
        """Return a callback for the thread that is called in the loop."""
        if callback is None:
            return None
        return functools.partial(self._client.call_in_loop, callback)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
