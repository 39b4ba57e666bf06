"""AsyncSession: a session for an event loop, which it never blocks: its work is done in a thread of its own.

    async with AsyncSession(model="claude-sonnet-4-5") as session:
        await session.append({"role": "user", "content": "Fix the failing test"})
        view = await session.messages()

There is one implementation: `Session`. Each method here runs the one of the same name in the thread, in the
order in which the calls were made.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from inspect import iscoroutinefunction, signature
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ctxgc.budget import InstructionBudget
from ctxgc.collector import GCResult
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.errors import InputError, SessionBusyError
from ctxgc.session.calls import Callback, Event
from ctxgc.session.session import Session
from ctxgc.strategies import GCPlugin

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("ctxgc")


# -- The interpreter, which lets a loop wait although the work is done in threads


FULL_PASS_AFTER = 200
"""How many passes over younger objects Python's collector makes before one over all; its own choice is 10.

A pass over all stops every thread: 0.2 s with three sessions of 2,000 messages. With this it comes about once
for 1.4 million objects that stay, so that cycles that nothing reaches any more are still bounded.
"""

SWITCH_SECONDS = 0.001
"""How long a thread may compute before another one has its turn; Python's own choice is 5 ms.

With three sessions at work the loop can wait for three turns and more.
"""

_DEFAULT_FULL_PASS = 10
_DEFAULT_SWITCH = 0.005


def _favour_the_loop() -> None:
    """Let threads keep the loop waiting less; what the program has set itself stays as it is."""
    young, middle, full = gc.get_threshold()
    # From 3.14 on Python's collector works in small steps by itself.
    if full == _DEFAULT_FULL_PASS and sys.version_info < (3, 14):
        gc.set_threshold(young, middle, FULL_PASS_AFTER)
    if sys.getswitchinterval() == _DEFAULT_SWITCH:
        sys.setswitchinterval(SWITCH_SECONDS)


# -- Threads


class WorkThread:
    """A thread that does one thing after the other for an event loop."""

    def __init__(self, name: str) -> None:
        _favour_the_loop()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.is_stopped = False

    def start(self, work: Callable[[], R]) -> Future[R]:
        """Do something as soon as all that was asked for before is done."""
        try:
            return self._pool.submit(copy_context().run, work)
        except RuntimeError as error:
            raise SessionBusyError(
                "the session was closed", hint="open it again by its id"
            ) from error

    async def run(self, work: Callable[[], R]) -> R:
        """Do something and wait for it, without blocking the loop.

        Who stops waiting does not cut it: what has begun is finished, what has not begun is not done.
        """
        return await asyncio.wrap_future(self.start(work))

    def stop(self) -> None:
        """Take nothing more, and end the thread when it is done."""
        self.is_stopped = True
        self._pool.shutdown(wait=False)


def _in_thread(
    method: Callable[Concatenate[Session, P], R],
) -> Callable[Concatenate[AsyncSession, P], Coroutine[Any, Any, R]]:
    """Return the coroutine function that runs a method of `Session` in the session's thread."""

    @functools.wraps(method)
    async def called(self: AsyncSession, /, *given: P.args, **more: P.kwargs) -> R:
        return await self._run(lambda session: method(session, *given, **more))

    return called


def _opening(
    kind: Callable[P, Session],
) -> Callable[Concatenate[AsyncSession, P], None]:
    """Return the `__init__` that begins to open a session in a thread, with the arguments of `Session`."""

    def called(self: AsyncSession, /, *given: P.args, **more: P.kwargs) -> None:
        signature(kind).bind(*given, **more)
        self._thread = WorkThread("ctxgc-session")
        self._opened = self._thread.start(lambda: with_vocabulary(kind(*given, **more)))

    return called


def with_vocabulary(session: Session) -> Session:
    """Return the session with its vocabulary loaded, so that the first request need not wait for it."""
    session.inspect().accounting.counter.count("ctxgc")
    return session


def _nothing(_: Session) -> None:
    return None


class AsyncSession:
    """A `Session` whose methods are coroutines: same names, same arguments, same results, same errors.

    It takes what `Session` takes and begins to open at once, in a thread of its own, with the vocabulary of
    its model; the first call waits for that, and reports what went wrong. Calls are done in the order in
    which they were made. A call that is cancelled leaves the session whole: if it had begun, it is finished.
    Strategies, summarizers and counters of yours are called in the thread, listeners of events in the loop.
    """

    _thread: WorkThread
    _opened: Future[Session]

    __init__ = _opening(Session)

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return a session that is open already, for a loop."""
        made, opened = cls.__new__(cls), Future[Session]()
        opened.set_result(session)
        vars(made).update(_thread=WorkThread("ctxgc-session"), _opened=opened)
        return made

    async def opened(self) -> Self:
        """Wait until the session is open and its vocabulary is loaded, and return it."""
        await self._run(_nothing)
        return self

    async def _run(self, work: Callable[[Session], R]) -> R:
        return await self._thread.run(lambda: work(self._opened.result()))

    @property
    def _session(self) -> Session:
        """The session, for what takes no time to read.

        Raises:
            SessionBusyError: it is not open yet.
        """
        if not self._opened.done():
            raise SessionBusyError(
                "the session is not open yet", hint="await opened(), or use `async with`"
            )
        return self._opened.result()

    # -- what takes no time to read, once it is open ------------------------------------------------

    @property
    def session_id(self) -> str:
        """The id that continues this session in its store."""
        return self._session.session_id

    @property
    def damage(self) -> tuple[str, ...]:
        """What the store had lost of this session when it was opened with `damaged="accept"`."""
        return self._session.damage

    @property
    def config(self) -> GCConfig:
        """The configuration in force."""
        return self._session.config

    @property
    def plugin(self) -> GCPlugin:
        """The strategy in force."""
        return self._session.plugin

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        return self._session.context_limit

    @property
    def history(self) -> list[Message]:
        """The messages of the view, in parts, to be read."""
        return self._session.history

    @property
    def budget(self) -> InstructionBudget:
        """The ledger of what is in the context, by source, child and policy."""
        return self._session.budget

    @property
    def gc_history(self) -> list[GCResult]:
        """The results of all collections, refused ones included, oldest first."""
        return self._session.gc_history

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in, or was changed by hand, that the store does not hold yet."""
        return self._session.is_unsaved

    # -- what the thread does, in the order of `Session` --------------------------------------------

    set_gc_plugin = _in_thread(Session.set_gc_plugin)
    append = _in_thread(Session.append)
    extend = _in_thread(Session.extend)
    sync = _in_thread(Session.sync)
    arrivals = _in_thread(Session.arrivals)
    set_system = _in_thread(Session.set_system)
    set_tools = _in_thread(Session.set_tools)
    live_tools = _in_thread(Session.live_tools)
    enrich = _in_thread(Session.enrich)
    enrichment = _in_thread(Session.enrichment)
    set_task = _in_thread(Session.set_task)
    set_active_file = _in_thread(Session.set_active_file)
    messages = _in_thread(Session.messages)
    messages_json = _in_thread(Session.messages_json)
    placed = _in_thread(Session.placed)
    shared = _in_thread(Session.shared)
    view = _in_thread(Session.view)
    report_usage = _in_thread(Session.report_usage)
    usage = _in_thread(Session.usage)
    plan = _in_thread(Session.plan)
    collect = _in_thread(Session.collect)
    manual_gc = _in_thread(Session.manual_gc)
    relieve = _in_thread(Session.relieve)
    recover = _in_thread(Session.recover)
    undo = _in_thread(Session.undo)
    pin = _in_thread(Session.pin)
    unpin = _in_thread(Session.unpin)
    set_policy = _in_thread(Session.set_policy)
    annotate = _in_thread(Session.annotate)
    recall = _in_thread(Session.recall)
    recalled = _in_thread(Session.recalled)
    read = _in_thread(Session.read)
    note_fault = _in_thread(Session.note_fault)
    search = _in_thread(Session.search)
    tools = _in_thread(Session.tools)
    answer = _in_thread(Session.answer)
    segments = _in_thread(Session.segments)
    delete = _in_thread(Session.delete)
    collect_stash = _in_thread(Session.collect_stash)
    checkpoint = _in_thread(Session.checkpoint)
    restore = _in_thread(Session.restore)
    checkpoints = _in_thread(Session.checkpoints)
    progress = _in_thread(Session.progress)
    inspect = _in_thread(Session.inspect)
    flush = _in_thread(Session.flush)

    async def events(self, callback: Callback) -> Callable[[], None]:
        """Call back in this loop for every event from now on; return a function that ends that.

        Raises:
            InputError: it is not a plain function.
        """
        if iscoroutinefunction(callback):
            raise InputError(
                "callback cannot be a coroutine function",
                hint="give a function; it may start a task, or put the event in a queue",
                field="callback",
            )
        listener = _Listener(callback, asyncio.get_running_loop())
        end = await self._run(lambda session: session.events(listener.hear))
        listener.end = end
        return end

    async def close(self) -> None:
        """Make everything durable, let go of the store, and end the thread; closing twice is allowed."""
        if self._thread.is_stopped:
            return
        closing = self._thread.start(lambda: self._opened.result().close())
        self._thread.stop()
        await asyncio.wrap_future(closing)

    def __repr__(self) -> str:
        return (
            f"<Async{repr(self._session)[1:]}" if self._opened.done() else "<AsyncSession: opening>"
        )

    async def __aenter__(self) -> Self:
        return await self.opened()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class _Listener:
    """A listener of events that is called in its loop; one that raises is dropped, as in a session."""

    def __init__(self, callback: Callback, loop: asyncio.AbstractEventLoop) -> None:
        self._callback = callback
        self._loop = loop
        self.end: Callable[[], None] = lambda: None

    def hear(self, event: Event) -> None:
        """Pass an event on from the thread of the session."""
        self._loop.call_soon_threadsafe(self._call, event)

    def _call(self, event: Event) -> None:
        try:
            self._callback(event)
        except Exception:  # noqa: BLE001 - a callback may raise anything
            _log.exception("an event callback raised; it is dropped")
            self.end()
