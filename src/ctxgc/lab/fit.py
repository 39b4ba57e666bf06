"""Fitting the constants of the default policy: a seeded search that replays runs and nothing else.

A constant is changed at random and the change is kept when the runs are cheaper by it and no promise
of the preset is broken. The runs, the seed and what was reached are written into the file.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.lab.needs import Needs
from ctxgc.lab.ours import Ours
from ctxgc.lab.regimes import Regime
from ctxgc.lab.replay import replay
from ctxgc.lab.result import RunResult
from ctxgc.thrift.presets import Coefficients, Preset

FIXED = frozenset({"guard", "trims_calls", "copy_lines", "copy_chars", "least_saving"})
"""Constants that are not fitted: promises, and what a reader of the view must be able to follow."""
_SPREAD = 0.3


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset must keep, as shares, with a margin for runs that were not seen."""

    strict: float = 0.9715
    clean: float = 0.9903
    line_step: float
    word: float
    worst: float = 1.045


GOALS: Mapping[str, Goal] = {
    "default": Goal(line_step=0.9430, word=0.8950),
    "lean": Goal(line_step=0.9230, word=0.0),
    "careful": Goal(line_step=0.9630, word=0.9240),
}


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset does on the runs: the bill as a share of never pruning, and what is kept."""

    bill: float
    strict: float
    clean: float
    line_step: float
    word: float
    worst: float

    def loss(self, goal: Goal) -> float:
        """Return the bill, and a price for every point that is missing."""
        missing = (
            2.0 * max(0.0, goal.strict - self.strict),
            4.0 * max(0.0, goal.clean - self.clean),
            1.5 * max(0.0, goal.line_step - self.line_step),
            1.0 * max(0.0, goal.word - self.word),
            1.0 * max(0.0, self.worst - goal.worst),
        )
        return self.bill + sum(missing)


def reached(results: Sequence[RunResult]) -> Reached:
    """Return what the results of all runs come to."""

    def share(part: str, whole: str) -> float:
        total = sum(getattr(result, whole) for result in results)
        return sum(getattr(result, part) for result in results) / total if total else 1.0

    return Reached(
        bill=share("bill", "unpruned"),
        strict=share("strict", "steps"),
        clean=share("clean", "steps"),
        line_step=share("line_steps_kept", "line_steps"),
        word=share("words_kept", "words"),
        worst=max((result.ratio for result in results), default=1.0),
    )


def play(
    constants: Preset, runs: Sequence[Needs], sheet: PriceSheet, regime: Regime
) -> list[RunResult]:
    """Replay runs with these constants."""
    policy = Ours(name="fit", options={"constants": msgspec.to_builtins(constants)})
    return [replay(policy, needs.run, regime, sheet, needs=needs) for needs in runs]


def fit(
    start: Preset,
    goal: Goal,
    judge: Callable[[Preset], Reached],
    *,
    rounds: int,
    seed: int,
    tell: Callable[[int, Reached], None],
) -> tuple[Preset, Reached]:
    """Return better constants and what they reach.

    Args:
        start: the constants to begin with.
        goal: what must be kept.
        judge: replays the runs.
        rounds: how many changes to try.
        seed: chooses the changes.
        tell: is told each improvement, with its round.
    """
    draw = random.Random(seed)  # noqa: S311 - a search, not a secret
    best, found = start, judge(start)
    tell(0, found)
    for number in range(1, rounds + 1):
        other = changed(best, draw)
        result = judge(other)
        if result.loss(goal) < found.loss(goal):
            best, found = other, result
            tell(number, found)
    return best, found


def changed(constants: Preset, draw: random.Random) -> Preset:
    """Return constants of which one to three are a little different."""
    flat = _flat(constants)
    for key in draw.sample(sorted(flat.keys() - FIXED), draw.choice((1, 2, 3))):
        value = flat[key] * math.exp(draw.gauss(0, _SPREAD))
        flat[key] = (
            max(1, round(value)) if isinstance(flat[key], int) else round(min(1.5, value), 4)
        )
    return _unflat(flat)


def _flat(constants: Preset) -> dict[str, Any]:
    fields = msgspec.to_builtins(constants)
    shares = fields.pop("shares")
    pairs = {f"{kind}.{n}": value for kind, both in shares.items() for n, value in enumerate(both)}
    return {**fields, **pairs}


def _unflat(flat: Mapping[str, Any]) -> Preset:
    fields: dict[str, Any] = {key: value for key, value in flat.items() if "." not in key}
    kinds = dict.fromkeys(key.partition(".")[0] for key in flat if "." in key)
    fields["shares"] = {kind: [flat[f"{kind}.0"], flat[f"{kind}.1"]] for kind in kinds}
    return msgspec.convert(fields, Preset)


def with_preset(known: Coefficients, name: str, constants: Preset, made: str) -> Coefficients:
    """Return the file of constants with those of one preset, and where they come from."""
    return Coefficients(
        provenance={**known.provenance, name: made},
        presets={**known.presets, name: constants},
    )
