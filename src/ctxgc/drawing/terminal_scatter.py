"""A scatter in a terminal: a letter for each point, and a key below."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from ctxgc.drawing.front import front
from ctxgc.drawing.scales import Scale, checked, fitted, ticks, told_apart
from ctxgc.drawing.terminal import Line, plain


class Point(NamedTuple):
    """A named point, the style of its letter, and whether it takes part in the front."""

    name: str
    x: float
    y: float
    style: str = ""
    rival: bool = True


def scatter(
    points: Sequence[Point], *, x: str, y: str, width: int = 64, height: int = 16, key: bool = True
) -> list[Line]:
    """Return a plot with a letter per point; capitals stand for those that no rival beats.

    Args:
        points: the points; less x and more y is better. Where several share a place, the first is
            drawn, and the key names them all.
        x: what the values along the bottom are.
        y: what the values at the left are.
        width: how many columns the plot takes.
        height: how many rows the plot takes.
        key: whether the names follow below.
    """
    if not points:
        return []
    checked([value for point in points for value in (point.x, point.y)], "points")
    across = fitted([point.x for point in points], 0, width - 1)
    up = fitted([point.y for point in points], height - 1, 0)
    letters = _letters(points)
    grid = _grid(points, letters, across, up)
    lines = [plain(f"  {y}", "faint")]
    lines += [_row(grid, row, up, width) for row in range(height)]
    lines += [*_bottom(across, width), plain(f"{x:>{width + 8}}", "faint")]
    return lines + (_key(points, letters) if key else [])


def _letters(points: Sequence[Point]) -> list[str]:
    """Give the points of the front capitals and the others small letters, both in reading order."""
    rivals = [place for place, point in enumerate(points) if point.rival]
    best = {rivals[i] for i in front([(points[p].x, points[p].y) for p in rivals])}
    great, small = iter(ascii_uppercase), iter(ascii_lowercase)
    return [next(great if place in best else small, "*") for place in range(len(points))]


def _grid(
    points: Sequence[Point], letters: Sequence[str], across: Scale, up: Scale
) -> dict[tuple[int, int], tuple[str, str]]:
    grid: dict[tuple[int, int], tuple[str, str]] = {}
    for point, letter in zip(points, letters, strict=True):
        place = (round(up.at(point.y)), round(across.at(point.x)))
        if place not in grid or letter.isupper():
            grid[place] = (letter, point.style)
    return grid


def _row(grid: dict[tuple[int, int], tuple[str, str]], row: int, up: Scale, width: int) -> Line:
    values = ticks(up.low, up.high, 5)
    written = {round(up.at(at)): text for at, text in zip(values, told_apart(values), strict=True)}
    shown = written.get(row, "")
    empty = "·" if row in written else " "
    return [
        (f"{shown:>6} │", "faint"),
        *(grid.get((row, column), (empty, "faint")) for column in range(width)),
    ]


def _bottom(across: Scale, width: int) -> list[Line]:
    line = [" "] * (width + 8)
    rule = ["─"] * width
    values = ticks(across.low, across.high, 6)
    for value, written in zip(values, told_apart(values), strict=True):
        column = round(across.at(value))
        rule[column] = "┴"
        start = min(max(8 + column - len(written) // 2, 0), len(line) - len(written))
        line[start : start + len(written)] = written
    return [plain(f"       └{''.join(rule)}", "faint"), plain("".join(line), "faint")]


def _key(points: Sequence[Point], letters: Sequence[str]) -> list[Line]:
    wide = max(len(point.name) for point in points) + 6
    columns = max(1, 72 // wide)
    entries = [
        (f"{letter} {point.name}".ljust(wide), point.style)
        for point, letter in zip(points, letters, strict=True)
    ]
    rows = [entries[start : start + columns] for start in range(0, len(entries), columns)]
    return [[("        ", ""), *row] for row in rows]
