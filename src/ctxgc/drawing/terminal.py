"""Drawings for a terminal, as lines of styled text: bars, a sparkline, a chart over time, a scatter.

`STYLES` says how rich writes the styles of a line; `layout` has the lines themselves, and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, NamedTuple

from ctxgc.drawing.layout import Column, Line, Span, display_width, plain, terminal_table
from ctxgc.drawing.scales import (
    Scale,
    check_finite,
    distinct_labels,
    fitted_scale,
    pareto_front,
    ticks,
)

BLOCKS = " ▁▂▃▄▅▆▇█"
_PARTS = "▏▎▍▌▋▊▉█"
_LONGEST_BAR, _SHORTEST_BAR = 40, 8
_LEAST_NAME, _LEAST_NOTE = 14, 10
_CHART_LABEL = 6
_SCATTER_LABEL = 8
ZONES = ((95.0, "critical"), (85.0, "danger"), (70.0, "warning"), (0.0, "safe"))


STYLES = {
    "": "",
    "title": "bold",
    "name": "bold cyan",
    "faint": "bright_black",
    "safe": "green",
    "warning": "yellow",
    "danger": "dark_orange",
    "critical": "red",
}
"""How rich writes each style."""


def zone(percent: float) -> str:
    """Return the zone of a window that is filled to this percentage."""
    return next(name for start, name in ZONES if percent >= start)


def bar(percent: float, width: int) -> Line:
    """Return a bar that is filled to a percentage, in the style of its zone."""
    full = min(width, round(width * percent / 100))
    return [("█" * full, zone(percent)), ("░" * (width - full), "faint")]


def rule(title: str, width: int) -> Line:
    """Return a title with a line to the right edge."""
    drawn = "─" * max(0, width - len(title) - 4)
    return [("── ", "faint"), (title, "title"), (f" {drawn}", "faint")]


def terminal_bars(
    rows: Sequence[tuple[str, float, *tuple[str, ...]]],
    width: int,
    style: str = "name",
    keep: Literal["start", "end"] = "start",
) -> list[Line]:
    """Return one bar per row of name, value and notes; the largest value has the longest bar.

    Args:
        rows: the names, values (not negative) and notes, in the order to draw them. Notes that are
            numbers are aligned right.
        width: columns of the whole line. Names and the last notes are cut if they leave no room.
        style: of the bars.
        keep: which part of a name is kept if it is cut.
    """
    if not rows:
        return []
    most = max(value for _, value, *_ in rows)
    texts = zip(*([name, *said] for name, _, *said in rows), strict=True)
    taken = sum(2 + max(map(display_width, column)) for column in texts)
    notes = len(rows[0]) - 2
    longest = min(_LONGEST_BAR, max(_SHORTEST_BAR, width - 2 - taken))
    cells: list[list[Span]] = [
        [(name, ""), (_partly(value / most * longest if most > 0 else 0.0).ljust(longest), style),
         *((note, "faint") for note in said)]
        for name, value, *said in rows
    ]  # fmt: skip
    columns = [
        Column(least=_LEAST_NAME, keep=keep),
        *(Column() for _ in range(notes)),
        *([Column(least=_LEAST_NOTE)] if notes else []),
    ]
    return terminal_table(columns, cells, width)


def sparkline(values: Sequence[float], width: int) -> str:
    """Return values over time in one row of characters; each shows the highest of its group."""
    if not values:
        return ""
    columns = [max(part) for part in _parts(values, width)]
    low, high = min(0.0, *columns), max(columns)
    span = (high - low) or 1.0
    return "".join(BLOCKS[1 + round((value - low) / span * 7)] for value in columns)


def chart(percents: Sequence[float], width: int, marks: dict[int, str]) -> list[Line]:
    """Return ten lines, 100% on top, that show a percentage over time.

    Args:
        percents: the values in order; each column shows the highest of its group.
        width: columns of the whole line, the percentages and the names of the marks included.
        marks: percentages with a name, drawn as dotted lines.
    """
    if not percents:
        return []
    columns = [max(part) for part in _parts(percents, chart_columns(width, marks))]
    return [_chart_row(columns, floor, marks) for floor in range(90, -10, -10)]


def chart_columns(width: int, marks: dict[int, str]) -> int:
    """Return how many values next to each other a chart of a width can show."""
    return width - _CHART_LABEL - max((1 + len(name) for name in marks.values()), default=0)


def _chart_row(columns: list[float], floor: int, marks: dict[int, str]) -> Line:
    empty = "·" if floor in marks else " "
    row: Line = [(f"{floor:>4}% ", "faint")]
    for percent in columns:
        eighths = round((percent - floor) / 10 * 8)
        row.append((BLOCKS[min(8, eighths)], zone(percent)) if eighths > 0 else (empty, "faint"))
    return [*row, (f" {marks[floor]}" if floor in marks else "", "faint")]


def _partly(columns: float) -> str:
    """Return a bar of this many columns, to an eighth; anything above zero is visible."""
    eighths = max(round(columns * 8), 1 if columns > 0 else 0)
    return "█" * (eighths // 8) + (_PARTS[eighths % 8 - 1] if eighths % 8 else "")


def _parts(values: Sequence[float], count: int) -> list[Sequence[float]]:
    """Split values into at most `count` parts of nearly the same length, none of them empty."""
    count = min(count, len(values))
    edges = [len(values) * place // count for place in range(count + 1)]
    return [values[start:end] for start, end in pairwise(edges)]


# -- Scatter


class ScatterPoint(NamedTuple):
    """A named point, the style of its letter, and whether it counts for the front."""

    name: str
    x: float
    y: float
    style: str = ""
    rival: bool = True


def terminal_scatter(
    points: Sequence[ScatterPoint],
    *,
    x: str,
    y: str,
    width: int = 72,
    height: int = 16,
    key: bool = True,
) -> list[Line]:
    """Return a plot with a letter per point; capitals mark those that no rival beats.

    Args:
        points: the points; less x and more y is better. Where several share a place, the first is
            drawn, and the key names them all.
        x: what the values along the bottom are.
        y: what the values at the left are.
        width: columns of the whole line.
        height: rows of the plot.
        key: whether the names follow below.
    """
    if not points:
        return []
    check_finite([value for point in points for value in (point.x, point.y)], "points")
    plot = width - _SCATTER_LABEL
    across = fitted_scale([point.x for point in points], 0, plot - 1)
    up = fitted_scale([point.y for point in points], height - 1, 0)
    letters = _letters(points)
    grid = _grid(points, letters, across, up)
    lines = [plain(f"  {y}", "faint")]
    lines += [_row(grid, row, up, plot) for row in range(height)]
    lines += [*_bottom(across, plot), plain(f"{x:>{width}}", "faint")]
    return lines + (_key(points, letters, plot) if key else [])


def _letters(points: Sequence[ScatterPoint]) -> list[str]:
    """Return capitals for the points of the front and small letters for the others, in reading order."""
    rivals = [place for place, point in enumerate(points) if point.rival]
    best = {rivals[i] for i in pareto_front([(points[p].x, points[p].y) for p in rivals])}
    great, small = iter(ascii_uppercase), iter(ascii_lowercase)
    return [next(great if place in best else small, "*") for place in range(len(points))]


def _grid(
    points: Sequence[ScatterPoint], letters: Sequence[str], across: Scale, up: Scale
) -> dict[tuple[int, int], tuple[str, str]]:
    grid: dict[tuple[int, int], tuple[str, str]] = {}
    for point, letter in zip(points, letters, strict=True):
        place = (round(up.at(point.y)), round(across.at(point.x)))
        if place not in grid or letter.isupper():
            grid[place] = (letter, point.style)
    return grid


def _row(grid: dict[tuple[int, int], tuple[str, str]], row: int, up: Scale, width: int) -> Line:
    values = ticks(up.low, up.high, 5)
    written = {
        round(up.at(at)): text for at, text in zip(values, distinct_labels(values), strict=True)
    }
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
    for value, written in zip(values, distinct_labels(values), strict=True):
        column = round(across.at(value))
        rule[column] = "┴"
        start = min(max(8 + column - len(written) // 2, 0), len(line) - len(written))
        line[start : start + len(written)] = written
    return [plain(f"       └{''.join(rule)}", "faint"), plain("".join(line), "faint")]


def _key(points: Sequence[ScatterPoint], letters: Sequence[str], width: int) -> list[Line]:
    wide = max(len(point.name) for point in points) + 6
    columns = max(1, width // wide)
    entries = [
        (f"{letter} {point.name}".ljust(wide), point.style)
        for point, letter in zip(points, letters, strict=True)
    ]
    rows = [entries[start : start + columns] for start in range(0, len(entries), columns)]
    return [[("        ", ""), *row] for row in rows]
