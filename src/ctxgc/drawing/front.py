"""The front: the points that no other point beats."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of the points that no other beats, by rising x.

    One point beats another when it has less x and at least as much y, or as much x and more y.
    Of equal points the first counts.
    """
    order = sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1]))
    best: list[int] = []
    for place in order:
        if not best or points[place][1] > points[best[-1]][1]:
            best.append(place)
    return best
