"""Trials: the same runs played again and again, each time with other options of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from typing import Any, Self

from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.lab.crowd import give, hushed, outcome, processes
from ctxgc.lab.needs import Needs
from ctxgc.lab.ours import Ours
from ctxgc.lab.regimes import Regime, parse_regime
from ctxgc.lab.replay import replay
from ctxgc.lab.result import RunResult
from ctxgc.lab.runs import Run
from ctxgc.lab.subject import Constants, Reached, Subject

Done = Callable[[], None]


class Stage:
    """Runs that are read once, however often they are played."""

    def __init__(self, runs: Sequence[Run], sheet: PriceSheet) -> None:
        self._runs = runs
        self._sheet = sheet
        self._needs: dict[int, Needs] = {}

    def play(self, number: int, options: Mapping[str, Any], regime: Regime) -> RunResult:
        """Return what these options did to a run."""
        needs = self._needs.get(number)
        if needs is None:
            needs = self._needs[number] = Needs(self._runs[number])
        policy = Ours(name="trial", options=dict(options))
        with hushed():
            return replay(policy, needs.run, regime, self._sheet, needs=needs)


class Trials:
    """Plays runs on as many cores as asked for; the results are the same whatever the jobs.

    Use it in a `with` statement: the processes live as long as that. `done` is called for each run
    that was played in a regime.
    """

    def __init__(
        self, runs: Sequence[Run], sheet: PriceSheet, jobs: int = 1, done: Done | None = None
    ) -> None:
        self.runs = runs
        self._sheet = sheet
        self._jobs = jobs
        self._done = done
        self._stage = Stage(runs, sheet)
        self._pool: Executor | None = None
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        if self._jobs > 1:
            pool = processes(self._jobs, _open_stage, self.runs, self._sheet)
            self._pool = self._exits.enter_context(pool)
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def play(self, options: Mapping[str, Any], regimes: Sequence[Regime]) -> list[list[RunResult]]:
        """Return the results of all runs, regime by regime.

        Raises:
            InputError: the options cannot be played.
        """
        orders = [(number, regime) for regime in regimes for number in range(len(self.runs))]
        found = self._together(options, orders) if self._pool else self._alone(options, orders)
        for result in found:
            if result.error:
                raise InputError(
                    f"run {result.run}: {result.error}", hint="are the constants right?"
                )
        count = len(self.runs)
        return [found[start : start + count] for start in range(0, len(found), count)]

    def judge(self, subject: Subject, constants: Constants) -> Reached:
        """Return what constants of a subject reach on the runs."""
        regimes = [parse_regime(name) for name in subject.regimes]
        return subject.reached(self.play(subject.options(constants), regimes))

    def _alone(
        self, options: Mapping[str, Any], orders: Sequence[tuple[int, Regime]]
    ) -> list[RunResult]:
        found = []
        for number, regime in orders:
            found.append(self._stage.play(number, options, regime))
            self._tell()
        return found

    def _together(
        self, options: Mapping[str, Any], orders: Sequence[tuple[int, Regime]]
    ) -> list[RunResult]:
        assert self._pool is not None  # noqa: S101 - for the type checker
        sent = [give(self._pool, _play, number, options, regime) for number, regime in orders]
        for each in sent:
            each.add_done_callback(self._tell)
        return [outcome(each) for each in sent]

    def _tell(self, _: Future[RunResult] | None = None) -> None:
        if self._done is not None:
            self._done()


_stages: list[Stage] = []
"""The stage of a process that was started to play."""


def _open_stage(runs: Sequence[Run], sheet: PriceSheet) -> None:
    _stages[:] = [Stage(runs, sheet)]


def _play(number: int, options: Mapping[str, Any], regime: Regime) -> RunResult:
    return _stages[0].play(number, options, regime)
