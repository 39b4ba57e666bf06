"""Every policy over every run, on as many processes as asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import Any, TypeVar

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.errors import CtxgcError
from ctxgc.lab.bits import AnswerBits
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies import policy
from ctxgc.lab.regimes import Regime
from ctxgc.lab.replay import replay_run
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run

AHEAD = 2
Done = Callable[[], None]
_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")


class RunOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with each run; without `bits_every` no copied bits are measured."""

    policies: tuple[str, ...]
    regime: Regime
    sheet: PriceSheet
    timing: bool = False
    survival: bool = False
    bits_every: int = 0


def play(order: RunOrder, run: Run) -> list[RunResult]:
    """Return the results of all policies of an order on one run, which is read once."""
    needs = Needs(run)
    bits = AnswerBits(needs, order.bits_every) if order.bits_every else None
    with quiet_log():
        return [
            replay_run(
                policy(name),
                run,
                order.regime,
                order.sheet,
                needs=needs,
                bits=bits,
                timing=order.timing,
                survival=order.survival,
            )
            for name in order.policies
        ]


def play_all(
    order: RunOrder, runs: Iterable[Run], jobs: int = 1, done: Done | None = None
) -> list[RunResult]:
    """Return the results of an order on all runs, in the order of the runs whatever `jobs` is.

    `done` is called after each run. Runs are read a few at a time, as they are needed.
    """
    return each_in_order(partial(play, order), runs, jobs, done)


def each_in_order(
    work: Callable[[_Item], Sequence[_Outcome]],
    items: Iterable[_Item],
    jobs: int = 1,
    done: Done | None = None,
) -> list[_Outcome]:
    """Return what `work` makes of all items, in their order whatever `jobs` is."""
    done = done or _nothing
    return in_run_order(
        _one_by_one(work, items, done) if jobs <= 1 else _in_processes(work, items, jobs, done)
    )


def in_run_order(played: Iterable[tuple[int, Sequence[_Outcome]]]) -> list[_Outcome]:
    """Return results that come with the number of their run, sorted by it."""
    ordered = sorted(played, key=lambda each: each[0])
    return [result for _, results in ordered for result in results]


def _one_by_one(
    work: Callable[[_Item], Sequence[_Outcome]], items: Iterable[_Item], done: Done
) -> Iterator[tuple[int, Sequence[_Outcome]]]:
    for number, item in enumerate(items):
        yield number, work(item)
        done()


def _in_processes(
    work: Callable[[_Item], Sequence[_Outcome]], items: Iterable[_Item], jobs: int, done: Done
) -> Iterator[tuple[int, Sequence[_Outcome]]]:
    waiting: dict[Future[Sequence[_Outcome]], int] = {}
    numbered = enumerate(items)
    with processes(jobs) as pool:
        while True:
            for number, item in islice(numbered, jobs * AHEAD - len(waiting)):
                waiting[submit(pool, work, item)] = number
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), result_of(future)
                done()


def processes(jobs: int, *initializer: Any) -> ProcessPoolExecutor:
    """Return a pool whose processes are all starting; each calls the initializer first, if any."""
    begin, *arguments = initializer or (None,)
    # Forked children would inherit the threads of a progress bar in an undefined state.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=begin, initargs=tuple(arguments)
    )
    # Python waits forever for a process that it starts at the moment when another one ends.
    for _ in range(jobs):
        submit(pool, int)
    return pool


def submit(pool: Executor, work: Callable[..., _Outcome], *arguments: Any) -> Future[_Outcome]:
    """Give work to the pool.

    Raises:
        CtxgcError: a process was killed, or none can be started.
    """
    try:
        return pool.submit(work, *arguments)
    except (BrokenProcessPool, OSError):  # a pool that breaks just now has closed its pipes
        raise _ended() from None


def result_of(future: Future[_Outcome]) -> _Outcome:
    """Return what a process found.

    Raises:
        CtxgcError: it was killed.
    """
    try:
        return future.result()
    except BrokenProcessPool:
        raise _ended() from None


def _ended() -> CtxgcError:
    return CtxgcError(
        "a process of the lab was killed",
        hint="if memory is short, try fewer --jobs",
    )


@contextmanager
def quiet_log() -> Iterator[None]:
    """Silence the log: a replay fills windows on purpose, thousands of times."""
    log = logging.getLogger("ctxgc")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _nothing() -> None:
    """Do nothing."""
