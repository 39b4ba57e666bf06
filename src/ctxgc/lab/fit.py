"""Fitting constants: a seeded search that replays runs and nothing else.

A constant is changed at random, and the change is kept when the runs do better by it. The runs, the
seed and what was reached are written into the file.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from ctxgc.lab.subject import Constants, Number, Reached, Subject

_SPREAD = 0.3


def fit(
    subject: Subject,
    judge: Callable[[Constants], Reached],
    *,
    rounds: int,
    seed: int,
    tell: Callable[[int, Reached], None],
) -> tuple[Constants, Reached]:
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


def changed(subject: Subject, constants: Constants, draw: random.Random) -> Constants:
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
