"""Ablation: what each constant is good for, told by what happens without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from ctxgc._version import __version__
from ctxgc.config import unknown_key
from ctxgc.lab.experiment import Experiment
from ctxgc.lab.fit import scaled
from ctxgc.lab.subject import Constants, Reached, Subject
from ctxgc.lab.trials import Trials

What = Literal["off", "half", "double"]
_FACTORS: dict[What, float] = {"half": 0.5, "double": 2.0}
LEAST_BILL = 0.001
LEAST_SHARE = 0.001
"""A difference below this is none: a tenth of a point, or a thousandth of the bill."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Other values for a constant, or for several that go together."""

    constant: str
    what: What
    values: Constants


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    """What a change comes to; `difference` is to the constants that ship."""

    constant: str
    what: What
    values: Constants
    reached: Reached
    difference: Reached

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
    reached: Reached
    rows: list[Ablated]

    @property
    def idle(self) -> list[str]:
        """The constants that moved nothing, whatever they were set to."""
        busy = {row.constant for row in self.rows if row.matters}
        return [name for name in dict.fromkeys(r.constant for r in self.rows) if name not in busy]


def changes(subject: Subject, only: Sequence[str] = ()) -> list[Change]:
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


def _changes(subject: Subject, name: str, keys: Sequence[str]) -> Iterator[Change]:
    start, seen = subject.start(), [{key: subject.start()[key] for key in keys}]
    tried: dict[What, Constants] = {"off": {key: subject.off[key] for key in keys}}
    for what, factor in _FACTORS.items():
        tried[what] = {key: scaled(start[key], factor, subject.most(key)) for key in keys}
    for what, values in tried.items():
        if values not in seen:
            seen.append(values)
            yield Change(constant=name, what=what, values=values)


def ablate(
    subject: Subject, experiment: Experiment, trials: Trials, tried: Sequence[Change]
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


def _ablated(change: Change, reached: Reached, start: Reached) -> Ablated:
    return Ablated(
        constant=change.constant,
        what=change.what,
        values=change.values,
        reached=reached,
        difference={key: value - start[key] for key, value in reached.items()},
    )
