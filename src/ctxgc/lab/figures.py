"""Figures with confidence intervals: shares of sums, and how they vary when other groups are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import msgspec

DRAWS = 1_000
SEED = 20_261_116


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A share, with the bounds of its 95% confidence interval; `of` is what it is a share of."""

    value: float
    low: float
    high: float
    of: float = 0.0


class Draws:
    """A bootstrap over groups: the same draws for every figure, and at every call.

    Runs of one group are not independent, so whole groups are drawn.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        names = sorted(set(groups))
        place = {name: number for number, name in enumerate(names)}
        self._place = [place[group] for group in groups]
        self._size = len(names)
        chance = random.Random(SEED)  # noqa: S311 - no secret, but the same at every run
        self._draws = [chance.choices(range(self._size), k=self._size) for _ in range(DRAWS)]

    def share(self, parts: Iterable[float], wholes: Iterable[float], empty: float = 1.0) -> Figure:
        """Return the sum of the parts over the sum of the wholes; `empty` where there is nothing."""
        part, whole = self._by_group(parts), self._by_group(wholes)
        total = sum(whole)
        value = sum(part) / total if total else empty
        drawn = sorted(_shares(part, whole, self._draws)) or [value]
        return Figure(value=value, low=_at(drawn, 0.025), high=_at(drawn, 0.975), of=total)

    def _by_group(self, values: Iterable[float]) -> list[float]:
        sums = [0.0] * self._size
        for place, value in zip(self._place, values, strict=True):
            sums[place] += value
        return sums


def _shares(part: list[float], whole: list[float], draws: list[list[int]]) -> Iterable[float]:
    of_part, of_whole = part.__getitem__, whole.__getitem__
    for draw in draws:
        total = sum(map(of_whole, draw))
        if total:
            yield sum(map(of_part, draw)) / total


def _at(ordered: list[float], share: float) -> float:
    """Return the value below which this share of the ordered ones lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value below which this share of the values lies; 0 of none."""
    ordered = sorted(values)
    return _at(ordered, share) if ordered else 0.0
