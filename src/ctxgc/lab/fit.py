"""Fitting constants: a seeded search that replays runs and nothing else.

A constant is changed at random, and the change is kept when the runs do better by it. The runs, the
seed and what was reached are written into the file.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from typing import Any, Literal, Self

import msgspec

from ctxgc._version import __version__
from ctxgc.config import unknown_key
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.lab.experiment import Experiment
from ctxgc.lab.fit_targets import Constants, FitTarget, Measures, Number
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies_ctxgc import CtxgcPolicy
from ctxgc.lab.pool import processes, quiet_log, result_of, submit
from ctxgc.lab.regimes import Regime, parse_regime
from ctxgc.lab.replay import replay_run
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run

_SPREAD = 0.3


def fit_constants(
    subject: FitTarget,
    judge: Callable[[Constants], Measures],
    *,
    rounds: int,
    seed: int,
    tell: Callable[[int, Measures], None],
) -> tuple[Constants, Measures]:
    """Return better constants and what they reach.

    Args:
        subject: whose constants, and what is asked of them.
        judge: replays the runs.
        rounds: how many changes to try.
        seed: chooses the changes.
        tell: is told each improvement, with its round.
    """
    draw = random.Random(seed)  # noqa: S311 - a search, not a secret
    best = subject.start()
    start = found = judge(best)
    tell(0, found)
    for number in range(1, rounds + 1):
        other = changed(subject, best, draw)
        result = judge(other)
        if subject.loss(result, start) < subject.loss(found, start):
            best, found = other, result
            tell(number, found)
    return best, found


def changed(subject: FitTarget, constants: Constants, draw: random.Random) -> Constants:
    """Return constants of which one to three are a little different."""
    other = dict(constants)
    for key in draw.sample(sorted(other.keys() - subject.fixed), draw.choice((1, 2, 3))):
        factor = math.exp(draw.gauss(0, _SPREAD))
        other[key] = scaled(other[key], factor, subject.most(key))
    return other


def scaled(value: Number, factor: float, most: float) -> Number:
    """Return a multiple of a constant, of the same kind and not above the most; a switch stays."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return max(1, round(value * factor))
    return float(f"{min(most, value * factor):.4g}")


# -- Trials: the same runs played again and again, each time with other options of ours


Done = Callable[[], None]


class LoadedRuns:
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
        policy = CtxgcPolicy(name="trial", options=dict(options))
        with quiet_log():
            return replay_run(policy, needs.run, regime, self._sheet, needs=needs)


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
        self._stage = LoadedRuns(runs, sheet)
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

    def judge(self, subject: FitTarget, constants: Constants) -> Measures:
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
        sent = [submit(self._pool, _play, number, options, regime) for number, regime in orders]
        for each in sent:
            each.add_done_callback(self._tell)
        return [result_of(each) for each in sent]

    def _tell(self, _: Future[RunResult] | None = None) -> None:
        if self._done is not None:
            self._done()


_stages: list[LoadedRuns] = []
"""The stage of a process that was started to play."""


def _open_stage(runs: Sequence[Run], sheet: PriceSheet) -> None:
    _stages[:] = [LoadedRuns(runs, sheet)]


def _play(number: int, options: Mapping[str, Any], regime: Regime) -> RunResult:
    return _stages[0].play(number, options, regime)


# -- Ablation: what each constant is good for, told by what happens without it


What = Literal["off", "half", "double"]
_FACTORS: dict[What, float] = {"half": 0.5, "double": 2.0}
LEAST_BILL = 0.001
LEAST_SHARE = 0.001
"""A difference below this is none: a tenth of a point, or a thousandth of the bill."""


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """Other values for a constant, or for several that go together."""

    constant: str
    what: What
    values: Constants


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    """What a change comes to; `difference` is to the constants that ship."""

    constant: str
    what: What
    values: Constants
    reached: Measures
    difference: Measures

    @property
    def matters(self) -> bool:
        """Whether anything moved."""
        return any(
            abs(moved) >= (LEAST_BILL if key == "bill" else LEAST_SHARE)
            for key, moved in self.difference.items()
        )


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """All changes of a subject, what was played, and what the constants that ship reach."""

    lab: int = 1
    version: str
    subject: str
    source: str
    regimes: tuple[str, ...]
    sheet: str
    least_tokens: int
    every: int
    runs: int
    constants: Constants
    reached: Measures
    rows: list[Ablated]

    @property
    def idle(self) -> list[str]:
        """The constants that moved nothing, whatever they were set to."""
        busy = {row.constant for row in self.rows if row.matters}
        return [name for name in dict.fromkeys(r.constant for r in self.rows) if name not in busy]


def variations(subject: FitTarget, only: Sequence[str] = ()) -> list[Variation]:
    """Return what is tried: each constant off, halved and doubled, where that is another value.

    Raises:
        ConfigError: there is no constant of a name in `only`.
    """
    start = subject.start()
    grouped = {key for keys in subject.together.values() for key in keys}
    alone = {key: (key,) for key in start if key not in grouped}
    every = {**alone, **subject.together}
    for name in only:
        if name not in every:
            raise unknown_key(name, every, f"constant of {subject.name}")
    chosen = [name for name in every if not only or name in only]
    return [change for name in chosen for change in _changes(subject, name, every[name])]


def _changes(subject: FitTarget, name: str, keys: Sequence[str]) -> Iterator[Variation]:
    start, seen = subject.start(), [{key: subject.start()[key] for key in keys}]
    tried: dict[What, Constants] = {"off": {key: subject.off[key] for key in keys}}
    for what, factor in _FACTORS.items():
        tried[what] = {key: scaled(start[key], factor, subject.most(key)) for key in keys}
    for what, values in tried.items():
        if values not in seen:
            seen.append(values)
            yield Variation(constant=name, what=what, values=values)


def ablate(
    subject: FitTarget, experiment: Experiment, trials: Trials, tried: Sequence[Variation]
) -> Ablation:
    """Return what changes of a subject's constants come to, on the runs of an experiment."""
    start = subject.start()
    found = trials.judge(subject, start)
    rows = [
        _ablated(change, trials.judge(subject, {**start, **change.values}), found)
        for change in tried
    ]
    return Ablation(
        version=__version__,
        subject=subject.name,
        source=experiment.source,
        regimes=subject.regimes,
        sheet=experiment.sheet,
        least_tokens=experiment.least_tokens,
        every=experiment.every,
        runs=len(trials.runs),
        constants=start,
        reached=found,
        rows=rows,
    )


def _ablated(change: Variation, reached: Measures, start: Measures) -> Ablated:
    return Ablated(
        constant=change.constant,
        what=change.what,
        values=change.values,
        reached=reached,
        difference={key: value - start[key] for key, value in reached.items()},
    )
