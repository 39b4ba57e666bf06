"""AsyncSession: the session of an event loop. All of its work is done in a thread of its own."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ctxgc import AsyncSession, Session
from ctxgc.core import utc_now
from ctxgc.errors import InputError, MessageError, SessionBusyError, StoreError
from ctxgc.session import Event
from ctxgc.stores import MemoryStore, open_store
from ctxgc.tokens import ExactCounter

Json = dict[str, Any]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def step(number: int, lines: int = 40) -> list[Json]:
    """Return a call and its result."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "f{number}.py"}}'},
    }
    text = "\n".join(f"line {n} of file {number}: value_{number}_{n}" for n in range(lines))
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


class Threads:
    """A clock and a counter that note the threads in which a session calls them."""

    name = "threads"
    exact = True

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self._counter = ExactCounter()

    def clock(self) -> datetime:
        self.seen.add(threading.get_ident())
        return utc_now()

    def count(self, text: str) -> int:
        self.seen.add(threading.get_ident())
        return self._counter.count(text)


class Gate(MemoryStore):
    """A store whose commits wait until they are let through."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.open = threading.Event()

    def commit(self, *given: Any, **more: Any) -> Any:
        self.reached.set()
        assert self.open.wait(60)
        return super().commit(*given, **more)


def test_every_method_of_a_session_is_a_coroutine_with_the_same_arguments() -> None:
    for name, method in inspect.getmembers(Session, inspect.isfunction):
        if name.startswith("_") or name in ("close", "events"):
            continue
        ours = getattr(AsyncSession, name)
        assert inspect.iscoroutinefunction(ours), name
        assert inspect.signature(ours) == inspect.signature(method)
        assert ours.__doc__ == method.__doc__
    for name, _ in inspect.getmembers(Session, lambda each: isinstance(each, property)):
        assert isinstance(inspect.getattr_static(AsyncSession, name), property), name


@pytest.mark.parametrize("kind", ["memory:", "json:{}/stash.json", "sqlite:{}/stash.db"])
def test_no_work_of_a_session_is_done_in_the_thread_of_the_loop(kind: str, tmp_path: Path) -> None:
    threads = Threads()

    async def agent(name: str) -> int:
        async with AsyncSession(
            3_000,
            store=kind.format(tmp_path),
            session_id=name,
            counter=threads,
            clock=threads.clock,
        ) as session:
            await session.tools("openai")
            await session.append(user("read all files"))
            for number in range(8):
                await session.extend(step(number))
                await session.messages()
            await session.search("value_3_7")
            await session.checkpoint("now")
            assert (await session.usage()).total_tokens <= 3_000
            return len(session.gc_history)

    async def three() -> list[int]:
        return await asyncio.gather(*map(agent, "abc"))

    collections = asyncio.run(three())
    assert min(collections) > 0
    assert len(threads.seen) == 3
    assert threading.get_ident() not in threads.seen


def test_it_does_what_a_session_does() -> None:
    def options() -> Json:
        return {
            "store": "memory:",
            "session_id": "same",
            "handle_key": b"k" * 16,
            "clock": moments(),
        }

    def moments() -> Callable[[], datetime]:
        return lambda: datetime.fromisoformat("2026-01-01T00:00:00+00:00")

    async def with_loop() -> tuple[list[Json], int]:
        async with AsyncSession(2_000, **options()) as session:
            await session.append(user("read all files"))
            for number in range(8):
                await session.extend(step(number))
                view = await session.messages()
            return view, len(session.gc_history)

    with Session(2_000, **options()) as session:
        session.append(user("read all files"))
        for number in range(8):
            session.extend(step(number))
            view = session.messages()
        assert asyncio.run(with_loop()) == (view, len(session.gc_history))


def test_calls_are_done_in_the_order_in_which_they_were_made() -> None:
    async def run() -> list[str]:
        async with AsyncSession(10_000, store="memory:") as session:
            await asyncio.gather(*(session.append(user(f"number {n}")) for n in range(30)))
            return [message["content"] for message in await session.messages()]

    assert asyncio.run(run()) == [f"number {n}" for n in range(30)]


def test_a_cancelled_call_that_had_begun_is_finished_and_one_that_had_not_is_not_done() -> None:
    async def run() -> list[Json]:
        store = Gate()
        session = AsyncSession(10_000, store=store)
        await session.append(user("first"))
        flushing = asyncio.create_task(session.flush())
        await asyncio.to_thread(store.reached.wait, 60)
        waiting = asyncio.create_task(session.append(user("never")))
        await asyncio.sleep(0)
        for task in (flushing, waiting):
            task.cancel()
        assert [
            type(each) for each in await asyncio.gather(flushing, waiting, return_exceptions=True)
        ] == [asyncio.CancelledError] * 2
        store.open.set()
        await session.append(user("second"))
        assert store.sessions() != []
        view = await session.messages()
        await session.close()
        return view

    assert [message["content"] for message in asyncio.run(run())] == ["first", "second"]


def test_listeners_are_called_in_the_loop_before_the_call_returns() -> None:
    async def run() -> list[tuple[str, int]]:
        heard: list[tuple[str, int]] = []

        def hear(event: Event) -> None:
            heard.append((event.kind, threading.get_ident()))

        async with AsyncSession(10_000, store="memory:") as session:
            end = await session.events(hear)
            (segment_id,) = await session.append(user("hello"))
            await session.pin(segment_id)
            assert len(heard) == 1
            end()
            await session.unpin(segment_id)
        return heard

    assert asyncio.run(run()) == [("pinned", threading.get_ident())]


def test_a_listener_that_raises_is_dropped_and_a_coroutine_function_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> int:
        heard: list[Event] = []

        def hear(event: Event) -> None:
            heard.append(event)
            raise RuntimeError("no more")

        async def later(event: Event) -> None:
            raise AssertionError(event)

        async with AsyncSession(10_000, store="memory:") as session:
            with pytest.raises(InputError, match="coroutine function"):
                await session.events(later)
            await session.events(hear)
            (segment_id,) = await session.append(user("hello"))
            await session.pin(segment_id)
            await session.unpin(segment_id)
        return len(heard)

    assert asyncio.run(run()) == 1
    assert "an event callback raised; it is dropped" in caplog.text


def test_errors_are_those_of_the_session() -> None:
    async def run() -> None:
        async with AsyncSession(10_000, store="memory:") as session:
            with pytest.raises(MessageError):
                await session.append({"role": "nobody"})
            assert await session.messages() == []
        with pytest.raises(SessionBusyError, match="was closed"):
            await session.append(user("too late"))
        await session.close()
        assert session.gc_history == []

    asyncio.run(run())


def test_what_cannot_be_opened_is_reported_by_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    async def run() -> None:
        with pytest.raises(TypeError):
            AsyncSession(10_000, shop="memory:")  # type: ignore[call-arg]
        session = AsyncSession(10_000, store=f"sqlite:{tmp_path}/file/stash.db")
        with pytest.raises(StoreError):
            await session.append(user("hello"))

    asyncio.run(run())


def test_what_is_read_before_it_is_open_says_how_to_wait() -> None:
    class Slow(MemoryStore):
        def get(self, *given: Any) -> Any:
            assert go.wait(60)
            return super().get(*given)

    async def run() -> None:
        session = AsyncSession(10_000, store=Slow(), session_id="slow")
        with pytest.raises(SessionBusyError, match=r"not open yet.*opened\(\)"):
            print(session.session_id)
        assert repr(session) == "<AsyncSession: opening>"
        go.set()
        assert (await session.opened()).session_id == "slow"
        assert repr(session).startswith("<AsyncSession 'slow'")
        await session.close()

    go = threading.Event()
    asyncio.run(run())


def test_a_session_of_a_loop_is_continued_by_a_plain_one(tmp_path: Path) -> None:
    url = f"json:{tmp_path}/stash.json"

    async def run() -> str:
        async with AsyncSession(10_000, store=url) as session:
            await session.append(user("hello"))
            return session.session_id

    name = asyncio.run(run())
    with Session(10_000, store=open_store(url), session_id=name) as session:
        assert session.view() == [user("hello")]


def test_the_vocabulary_is_loaded_when_the_session_is_open() -> None:
    code = (
        "import asyncio\n"
        "from ctxgc import AsyncSession\n"
        "from ctxgc.tokens import exact\n"
        "session = AsyncSession(model='gpt-5', store='memory:')\n"
        "asyncio.run(session.opened())\n"
        "print(list(exact._loaded))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['o200k_base']\n"


@pytest.mark.parametrize(("given", "after"), [((700, 10, 10), 200), ((700, 10, 30), 30)])
def test_python_looks_through_all_objects_less_often_unless_the_program_says_how_often(
    given: tuple[int, int, int], after: int
) -> None:
    code = (
        "import gc, asyncio, sys\n"
        f"gc.set_threshold(*{given})\n"
        "from ctxgc import AsyncSession\n"
        "session = AsyncSession(1_000, store='memory:')\n"
        "asyncio.run(session.close())\n"
        "print(gc.get_threshold()[2], sys.getswitchinterval())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    incremental = sys.version_info >= (3, 14)
    assert ran.stdout == f"{given[2] if incremental else after} 0.001\n"
    assert gc.isenabled()
