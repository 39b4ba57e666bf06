"""Names beside points, placed so that they cover neither one another nor a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxgc.drawing.frame import text_width

Spot = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_HEIGHT = 12.0
_RADIUS = 6.0
_REACHES = (9.0, 20.0, 34.0, 50.0, 70.0)
_SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))


class Place(NamedTuple):
    """Where a name stands: the foot of its text, its anchor, and whether it needs a leader."""

    x: float
    y: float
    anchor: str
    far: bool


def placed(names: Sequence[str], spots: Sequence[Spot], within: Box) -> list[Place]:
    """Return a place for each name: near its point, free of others, and inside the box if possible."""
    taken: list[Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in spots]
    chosen: dict[int, Place] = {}
    for number in sorted(range(len(names)), key=lambda n: (spots[n][1], spots[n][0], n)):
        options = list(_options(names[number], spots[number]))
        costs = [_cost(box, taken, within) + rank * 0.5 for rank, (_, box) in enumerate(options)]
        place, box = options[costs.index(min(costs))]
        taken.append(box)
        chosen[number] = place
    return [chosen[number] for number in range(len(names))]


def _options(name: str, spot: Spot) -> Iterator[tuple[Place, Box]]:
    """Yield the places around a point, nearest first, each with the box that it takes."""
    wide = text_width(name)
    for reach in _REACHES:
        for side, rise in _SIDES:
            x = spot[0] + side * reach
            y = spot[1] + rise * reach + 4
            left = {1: x, -1: x - wide, 0: x - wide / 2}[side]
            anchor = {1: "start", -1: "end", 0: "middle"}[side]
            yield Place(x, y, anchor, reach > 20), (left, y - _HEIGHT + 2, left + wide, y + 2)


def _cost(box: Box, taken: Sequence[Box], within: Box) -> float:
    outside = (
        max(0.0, within[0] - box[0]) + max(0.0, within[1] - box[1])
        + max(0.0, box[2] - within[2]) + max(0.0, box[3] - within[3])
    )  # fmt: skip
    return outside * 10 + sum(_overlap(box, other) for other in taken)


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
