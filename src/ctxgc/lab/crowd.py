"""A crowd of runs: every policy over every run, on as many cores as asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any, TypeVar

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.errors import CtxgcError
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies import policy
from ctxgc.lab.regimes import Regime
from ctxgc.lab.replay import replay
from ctxgc.lab.result import RunResult
from ctxgc.lab.runs import Run

AHEAD = 2
Done = Callable[[], None]
Outcome = TypeVar("Outcome")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with each run."""

    policies: tuple[str, ...]
    regime: Regime
    sheet: PriceSheet
    timing: bool = False


def play(order: Order, run: Run) -> list[RunResult]:
    """Return the results of all policies of an order on one run, which is read once for all."""
    needs = Needs(run)
    with hushed():
        return [
            replay(policy(name), run, order.regime, order.sheet, needs=needs, timing=order.timing)
            for name in order.policies
        ]


def play_all(
    order: Order, runs: Iterable[Run], jobs: int = 1, done: Done | None = None
) -> list[RunResult]:
    """Return the results of an order on all runs, in the order of the runs whatever the jobs.

    `done` is called as each run is finished. Runs are read as they are needed: a few at a time.
    """
    tell = done or _silence
    return gathered(
        _one_by_one(order, runs, tell) if jobs <= 1 else _in_processes(order, runs, jobs, tell)
    )


def gathered(played: Iterable[tuple[int, Sequence[RunResult]]]) -> list[RunResult]:
    """Return results that came with the number of their run, put in order."""
    ordered = sorted(played, key=lambda each: each[0])
    return [result for _, results in ordered for result in results]


def _one_by_one(
    order: Order, runs: Iterable[Run], tell: Done
) -> Iterator[tuple[int, list[RunResult]]]:
    for number, run in enumerate(runs):
        yield number, play(order, run)
        tell()


def _in_processes(
    order: Order, runs: Iterable[Run], jobs: int, tell: Done
) -> Iterator[tuple[int, list[RunResult]]]:
    waiting: dict[Future[list[RunResult]], int] = {}
    numbered = enumerate(runs)
    with processes(jobs) as pool:
        while True:
            for number, run in islice(numbered, jobs * AHEAD - len(waiting)):
                waiting[give(pool, play, order, run)] = number
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), outcome(future)
                tell()


def processes(jobs: int, *initializer: Any) -> ProcessPoolExecutor:
    """Return a pool whose processes are all on their way; each calls the initializer first, if any."""
    begin, *arguments = initializer or (None,)
    # Forked children would inherit the threads of a progress bar in the middle of whatever they do.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=begin, initargs=tuple(arguments)
    )
    # Python waits for ever for a process that it starts in the moment in which another one ends.
    for _ in range(jobs):
        give(pool, int)
    return pool


def give(pool: Executor, work: Callable[..., Outcome], *arguments: Any) -> Future[Outcome]:
    """Let a process work.

    Raises:
        CtxgcError: one was ended from outside, or none can be started.
    """
    try:
        return pool.submit(work, *arguments)
    except (BrokenProcessPool, OSError):  # a pool that breaks just now has closed its pipes
        raise _ended() from None


def outcome(future: Future[Outcome]) -> Outcome:
    """Return what a process found.

    Raises:
        CtxgcError: it was ended from outside.
    """
    try:
        return future.result()
    except BrokenProcessPool:
        raise _ended() from None


def _ended() -> CtxgcError:
    return CtxgcError(
        "a process of the lab was ended from outside",
        hint="was memory short? try fewer --jobs",
    )


@contextmanager
def hushed() -> Iterator[None]:
    """Keep the log quiet: a replay fills windows on purpose, thousands of times."""
    log = logging.getLogger("ctxgc")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _silence() -> None:
    """Tell nobody."""
