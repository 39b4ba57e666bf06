"""An experiment: which runs, which policies, under what; and the report on them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from ctxgc._version import __version__
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.errors import CtxgcError, InputError
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies import policy
from ctxgc.lab.regimes import Regime, parse_regime
from ctxgc.lab.replay import replay
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run, read_runs, run_files
from ctxgc.lab.summary import Report, report

# -- A crowd of runs: every policy over every run, on as many cores as asked for


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


LEAST_TOKENS = 8_000
MOST_NAMES = 4


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the lab; without `data` the corpus that ships with it is played."""

    policies: tuple[str, ...]
    data: Path | None = None
    set_name: str = ""
    regime: str = "cost"
    sheet: str = "anthropic-5m"
    least_tokens: int = LEAST_TOKENS
    every: int = 1
    most_runs: int | None = None
    timing: bool = False

    @property
    def source(self) -> str:
        """What is played, by the names of the files alone: the same on every machine."""
        return self._files if self.every == 1 else f"{self._files}, one run in {self.every}"

    @property
    def _files(self) -> str:
        if self.data is None:
            return "the corpus of ctxgc (synthetic)"
        files = run_files(self.data, self.set_name)
        if len(files) > MOST_NAMES:
            return f"{len(files)} files, {files[0].name} to {files[-1].name}"
        return ", ".join(file.name for file in files)

    def runs(self) -> Iterator[Run]:
        """Yield the runs, read one by one: one in `every`, and not more than `most_runs`."""
        return islice(islice(self._all_runs(), None, None, self.every), self.most_runs)

    def all_runs(self) -> list[Run]:
        """Return the runs.

        Raises:
            InputError: there are none.
        """
        return list(self.runs()) or self._refuse()

    def order(self) -> Order:
        """Return what is to be done with each run.

        Raises:
            ConfigError: there is no such policy, regime or sheet.
        """
        for name in self.policies:
            policy(name)
        return Order(
            policies=tuple(dict.fromkeys(self.policies)),
            regime=parse_regime(self.regime),
            sheet=price_sheet(self.sheet),
            timing=self.timing,
        )

    def report(self, results: Sequence[RunResult]) -> Report:
        """Return the report on the results of this experiment.

        Raises:
            InputError: there are none.
        """
        if not results:
            self._refuse()
        order = self.order()
        return report(
            [policy(name) for name in order.policies],
            results,
            version=__version__,
            source=self.source,
            regime=order.regime.name,
            sheet=order.sheet,
            least_tokens=self.least_tokens,
        )

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"no run of {self.least_tokens} tokens in {self.source}",
            hint="lower --least-tokens",
            field="least_tokens",
        )

    def _all_runs(self) -> Iterator[Run]:
        if self.data is not None:
            return read_runs(self.data, self.least_tokens, self.set_name)
        from ctxgc.lab.corpus import demo_runs  # noqa: PLC0415

        return iter(demo_runs(self.least_tokens))


def conduct(
    experiment: Experiment, jobs: int = 1, done: Callable[[], None] | None = None
) -> Report:
    """Play an experiment on this machine and return its report."""
    return experiment.report(play_all(experiment.order(), experiment.runs(), jobs, done))
