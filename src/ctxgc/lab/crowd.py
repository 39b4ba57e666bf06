"""A crowd of runs: every policy over every run, on as many cores as asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

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
    # Forked children would inherit the threads of a progress bar in the middle of whatever they do.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while True:
            for number, run in islice(numbered, jobs * AHEAD - len(waiting)):
                waiting[pool.submit(play, order, run)] = number
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), outcome(future)
                tell()


def outcome(future: Future[Outcome]) -> Outcome:
    """Return what a process found.

    Raises:
        CtxgcError: it was ended from outside.
    """
    try:
        return future.result()
    except BrokenProcessPool:
        raise CtxgcError(
            "a process of the lab was ended from outside",
            hint="was memory short? try fewer --jobs",
        ) from None


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
