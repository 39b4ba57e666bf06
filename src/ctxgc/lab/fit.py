"""Constants: fit them by a seeded search that replays runs, and ablate them one by one.

The search changes a few constants at random and keeps the change if the runs do better. `Trials` plays
the same runs again and again with other options. An ablation switches each constant off, halves and
doubles it, to show what it is good for.
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
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.errors import InputError
from ctxgc.lab.bits import AnswerBits, has_zstd
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
    target: FitTarget,
    judge: Callable[[Constants], Measures],
    *,
    rounds: int,
    seed: int,
    tell: Callable[[int, Measures], None],
) -> tuple[Constants, Measures]:
    """Return better constants and what they reach.

    Args:
        target: whose constants, and how they are judged.
        judge: replays the runs and returns what they reach.
        rounds: how many changes to try.
        seed: chooses the changes.
        tell: called with the round and the measures of each improvement.
    """
    draw = random.Random(seed)  # noqa: S311 - a search, not a secret
    best = target.start()
    start = found = judge(best)
    tell(0, found)
    for number in range(1, rounds + 1):
        other = changed(target, best, draw)
        result = judge(other)
        if target.loss(result, start) < target.loss(found, start):
            best, found = other, result
            tell(number, found)
    return best, found


def changed(target: FitTarget, constants: Constants, draw: random.Random) -> Constants:
    """Return the constants with one to three of them slightly changed."""
    other = dict(constants)
    for key in draw.sample(sorted(other.keys() - target.fixed), draw.choice((1, 2, 3))):
        factor = math.exp(draw.gauss(0, _SPREAD))
        other[key] = scaled(other[key], factor, target.most(key))
    return other


def scaled(value: Number, factor: float, most: float) -> Number:
    """Return a multiple of a constant, of the same type and at most `most`; a switch stays as it is."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return max(1, round(value * factor))
    return float(f"{min(most, value * factor):.4g}")


# -- Trials: the same runs, played again and again with other options


Done = Callable[[], None]


class _LoadedRuns:
    """Runs that are read once, however often they are played."""

    def __init__(self, runs: Sequence[Run], sheet: PriceSheet) -> None:
        self._runs = runs
        self._sheet = sheet
        self._read: dict[int, tuple[Needs, AnswerBits | None]] = {}

    def play(self, number: int, options: Mapping[str, Any], regime: Regime) -> RunResult:
        """Return what these options did to a run."""
        read = self._read.get(number)
        if read is None:
            needs = Needs(self._runs[number])
            read = self._read[number] = needs, AnswerBits(needs) if has_zstd() else None
        needs, bits = read
        policy = CtxgcPolicy(name="trial", options=dict(options))
        with quiet_log():
            return replay_run(policy, needs.run, regime, self._sheet, needs=needs, bits=bits)


class Trials:
    """Plays runs in `jobs` processes; the results do not depend on their number.

    Use it in a `with` statement: the processes end with it. `done` is called after each run in each
    regime.
    """

    def __init__(
        self, runs: Sequence[Run], sheet: PriceSheet, jobs: int = 1, done: Done | None = None
    ) -> None:
        self.runs = runs
        self._sheet = sheet
        self._jobs = jobs
        self._done = done
        self._loaded = _LoadedRuns(runs, sheet)
        self._pool: Executor | None = None
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        if self._jobs > 1:
            pool = processes(self._jobs, _load, self.runs, self._sheet)
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
                raise InputError(f"run {result.run}: {result.error}", hint="check the constants")
        count = len(self.runs)
        return [found[start : start + count] for start in range(0, len(found), count)]

    def judge(self, target: FitTarget, constants: Constants) -> Measures:
        """Return what constants of a target reach on the runs."""
        regimes = [parse_regime(name) for name in target.regimes]
        return target.reached(self.play(target.options(constants), regimes))

    def _alone(
        self, options: Mapping[str, Any], orders: Sequence[tuple[int, Regime]]
    ) -> list[RunResult]:
        found = []
        for number, regime in orders:
            found.append(self._loaded.play(number, options, regime))
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


def judge_constants(
    target: FitTarget, constants: Constants, experiment: Experiment, jobs: int = 1
) -> tuple[int, Measures] | None:
    """Return the number of runs in the half that an experiment leaves out, and what constants reach there.

    None if it leaves out none.
    """
    other = experiment.other_half()
    runs = list(other.runs()) if other else []
    if not runs:
        return None
    with Trials(runs, price_sheet(experiment.sheet), jobs) as trials:
        return len(runs), trials.judge(target, constants)


_loaded: list[_LoadedRuns] = []
"""The runs of a worker process."""


def _load(runs: Sequence[Run], sheet: PriceSheet) -> None:
    _loaded[:] = [_LoadedRuns(runs, sheet)]


def _play(number: int, options: Mapping[str, Any], regime: Regime) -> RunResult:
    return _loaded[0].play(number, options, regime)


# -- Ablation: what each constant is good for


What = Literal["off", "half", "double"]
_FACTORS: dict[What, float] = {"half": 0.5, "double": 2.0}
_LEAST_BILL = 0.001
_LEAST_SHARE = 0.001
"""Smaller differences do not count: a tenth of a percentage point, or a thousandth of the bill."""


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """Other values for a constant, or for a group of constants."""

    constant: str
    what: What
    values: Constants


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a variation; `difference` is relative to the constants that ship."""

    constant: str
    what: What
    values: Constants
    reached: Measures
    difference: Measures

    @property
    def matters(self) -> bool:
        """Whether any measure changed noticeably."""
        return any(
            abs(moved) >= (_LEAST_BILL if key == "bill" else _LEAST_SHARE)
            for key, moved in self.difference.items()
        )


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """All variations of a target, what was played, and what the constants that ship reach."""

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
        """The constants that changed nothing, whatever their value."""
        busy = {row.constant for row in self.rows if row.matters}
        return [name for name in dict.fromkeys(r.constant for r in self.rows) if name not in busy]


def variations(target: FitTarget, only: Sequence[str] = ()) -> list[Variation]:
    """Return what to try: each constant off, halved and doubled, if that is another value.

    Raises:
        ConfigError: a name in `only` is not a constant.
    """
    start = target.start()
    grouped = {key for keys in target.together.values() for key in keys}
    alone = {key: (key,) for key in start if key not in grouped}
    every = {**alone, **target.together}
    for name in only:
        if name not in every:
            raise unknown_key(name, every, f"constant of {target.name}")
    chosen = [name for name in every if not only or name in only]
    return [change for name in chosen for change in _changes(target, name, every[name])]


def _changes(target: FitTarget, name: str, keys: Sequence[str]) -> Iterator[Variation]:
    start, seen = target.start(), [{key: target.start()[key] for key in keys}]
    tried: dict[What, Constants] = {"off": {key: target.off[key] for key in keys}}
    for what, factor in _FACTORS.items():
        tried[what] = {key: scaled(start[key], factor, target.most(key)) for key in keys}
    for what, values in tried.items():
        if values not in seen:
            seen.append(values)
            yield Variation(constant=name, what=what, values=values)


def ablate(
    target: FitTarget, experiment: Experiment, trials: Trials, tried: Sequence[Variation]
) -> Ablation:
    """Return the effect of variations of a target's constants on the runs of an experiment."""
    start = target.start()
    found = trials.judge(target, start)
    rows = [
        _ablated(change, trials.judge(target, {**start, **change.values}), found)
        for change in tried
    ]
    return Ablation(
        version=__version__,
        subject=target.name,
        source=experiment.source,
        regimes=target.regimes,
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
