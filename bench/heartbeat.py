"""How long an event loop waits while three agents work in it, each on a session of 2,000 messages.

python -m bench.heartbeat            AsyncSession, and plain sessions called in the loop
python -m bench.heartbeat --quick    200 messages

One agent has its store in memory, one in a JSON file, one in SQLite. A task in the same loop wakes up every
two milliseconds and notes how late it is. A second process that does nothing else notes the same at the same
time: what the machine itself is late by. Opening is measured apart: tiktoken builds its table in one call,
once in a process.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bench.session_case import history
from bench.tables import duration, print_table, run
from ctxgc import AsyncSession, Session

MESSAGES = 2_000
WINDOW = 60_000
BEAT = 0.002
MOST_LATE = 0.020
STORES = ("memory:", "json:{}/stash.json", "sqlite:{}/stash.db")

Json = dict[str, Any]


class Beats(msgspec.Struct, frozen=True):
    """How late a heartbeat was, in seconds, the latest last."""

    late: list[float]

    def share(self, part: float) -> float:
        """Return what a part of the beats was not later than."""
        return self.late[min(len(self.late) - 1, int(len(self.late) * part))]

    @property
    def too_late(self) -> int:
        """How many beats were later than they may be."""
        return sum(late > MOST_LATE for late in self.late)


class Heart:
    """Beats in a loop until it is stopped."""

    def __init__(self) -> None:
        self._late: list[float] = []

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Beat while the block runs, and once more."""
        ended = asyncio.Event()
        task = asyncio.create_task(self._beat(ended))
        try:
            yield
        finally:
            ended.set()
            await task

    async def _beat(self, ended: asyncio.Event) -> None:
        """Wake up again and again, and note how late that is."""
        is_last = False
        while not is_last:
            is_last = ended.is_set()
            due = time.perf_counter() + BEAT
            await asyncio.sleep(BEAT)
            self._late.append(time.perf_counter() - due)

    def beats(self) -> Beats:
        """Return what was noted."""
        return Beats(sorted(self._late))


class Blocking:
    """A plain session behind the methods of an `AsyncSession`: what a loop must not do."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._session = Session(*given, **more)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def called(*given: Any, **more: Any) -> Any:
            await asyncio.sleep(0)
            return getattr(self._session, name)(*given, **more)

        return called

    async def opened(self) -> Blocking:
        """Return the session, which is open."""
        return self


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The beats of one run: while sessions open, while they work, and in a process that does nothing."""

    opening: Beats
    working: Beats
    idle: Beats
    collections: int


def measure(kind: Callable[..., Any], size: int) -> Outcome:
    """Let three agents work in one loop, in this process, and listen to its heart."""
    idle = subprocess.Popen(
        [sys.executable, "-m", "bench.heartbeat", "--idle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert idle.stdout is not None
    idle.stdout.readline()
    try:
        opening, working, collections = asyncio.run(_agents(kind, history(size)))
    finally:
        said, _ = idle.communicate(b"\n")
    beats = Beats(json.loads(said))
    return Outcome(opening=opening, working=working, idle=beats, collections=collections)


async def _agents(kind: Callable[..., Any], messages: list[Json]) -> tuple[Beats, Beats, int]:
    opening, working = Heart(), Heart()
    with tempfile.TemporaryDirectory() as folder:
        async with opening.beating():
            sessions = [kind(WINDOW, model="gpt-5", store=url.format(folder)) for url in STORES]
            for session in sessions:
                await session.opened()
        async with working.beating():
            found = await asyncio.gather(*(_agent(session, messages) for session in sessions))
            for session in sessions:
                await session.close()
    return opening.beats(), working.beats(), sum(found)


async def _agent(session: Any, messages: list[Json]) -> int:
    """Append message by message, ask for the view before each answer, and return how often it collected."""
    await session.tools("openai")
    for message in messages:
        if message["role"] == "assistant":
            await session.messages()
        await session.append(message)
    return len((await session.inspect()).log.results)


async def _idle() -> Beats:
    heart = Heart()
    print("ready", flush=True)
    async with heart.beating():
        await asyncio.to_thread(sys.stdin.readline)
    return heart.beats()


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found."""
    if "--idle" in arguments:
        print(json.dumps(asyncio.run(_idle()).late))
        return 0
    size = 200 if "--quick" in arguments else MESSAGES
    found = measure(AsyncSession, size)
    plain = measure(Blocking, size)
    print(f"Three agents in one loop, {size:,} messages each; how late the loop was:\n")
    rows = [("", "beats", "half", "99%", "99.9%", "latest", "over 20 ms")]
    rows.append(_row("AsyncSession, opening", found.opening))
    rows.append(_row("AsyncSession, at work", found.working))
    rows.append(_row("a process that does nothing", found.idle))
    rows.append(_row("Session in the loop", plain.working))
    rows.append(_row("a process that does nothing", plain.idle))
    print_table(rows, names=True)
    print(f"\n{found.collections} collections in the first run, {plain.collections} in the second")
    for line, met in targets(found, size):
        print(f"{'met    ' if met else 'NOT MET'}  {line}")
    return 0


def targets(found: Outcome, size: int) -> Sequence[tuple[str, bool]]:
    """Return each target in words, with what was measured and whether that meets it."""
    latest, machine = found.working.late[-1], found.idle.late[-1]
    line = (
        f"{size:,} messages: the loop is at most {duration(latest)} late, the machine itself "
        f"{duration(machine)} (at most 20 ms, or as late as the machine)"
    )
    return [(line, latest <= max(MOST_LATE, machine))]


def _row(name: str, beats: Beats) -> tuple[str, ...]:
    times = [
        duration(max(0.0, each))
        for each in (beats.share(0.5), beats.share(0.99), beats.share(0.999))
    ]
    return (name, f"{len(beats.late):,}", *times, duration(beats.late[-1]), f"{beats.too_late:,}")


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
