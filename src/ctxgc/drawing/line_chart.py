"""Lines: values that follow one another, one line per series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxgc.drawing.frame import (
    Axis,
    drawing,
    empty,
    hinted,
    legend,
    legend_lines,
    text_width,
    x_axis,
    y_axis,
)
from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import Scale, checked, fitted

TOP = 30.0


class Series(NamedTuple):
    """A line: a name, its points from left to right, the tone, and whether the area below is filled."""

    name: str
    points: Sequence[tuple[float, float]]
    tone: str = "accent"
    filled: bool = False


def lines(
    series: Sequence[Series], *, title: str, x: Axis | None = None, y: Axis | None = None,
    marks: Mapping[str, float] | None = None, floor: float | None = 0.0, dots: bool = False,
    width: float = 720, height: float = 300,
) -> Html:  # fmt: skip
    """Return a chart with one line per series.

    Args:
        series: the lines.
        title: what the chart shows, for those who cannot see it.
        x: label and form of the values along the bottom.
        y: label and form of the values at the left.
        marks: named levels, drawn as dashed lines.
        floor: where the left axis begins; None for just below the least value.
        dots: whether each point is shown, with its values as a hint.
        width: of the drawing in pixels; it shrinks with the page.
        height: of the drawing.
    """
    points = [point for one in series for point in one.points]
    if not points:
        return empty(title, width)
    x, y, marks = x or Axis(), y or Axis(), dict(marks or {})
    checked([value for point in points for value in point] + list(marks.values()), "lines")
    names = [(one.name, one.tone) for one in series] if len(series) > 1 else []
    left = 46.0
    bottom = height - 44 - 18 * (legend_lines(names, left, width - 12) if names else 0)
    across = fitted([p[0] for p in points], left, width - 14)
    up = fitted([p[1] for p in points] + list(marks.values()), bottom, TOP, floor=floor)
    parts = [
        *x_axis(across, x, TOP, bottom),
        *y_axis(up, y, left, width - 14),
        *(part for one in series for part in _line(one, across, up)),
        *(dot for one in series if dots for dot in _dots(one, across, up, x, y)),
        *(part for name, level in marks.items() for part in _level(name, up.at(level), across)),
        *legend(names, left, bottom + 54, width - 12),
    ]
    return drawing(title, width, height, parts)


def _line(one: Series, across: Scale, up: Scale) -> list[Html]:
    if not one.points:
        return []
    steps = " ".join(f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in one.points)
    drawn = [tag("path", class_=f"line tone-{one.tone}", d=f"M{steps}")]
    if one.filled:
        first, last = across.at(one.points[0][0]), across.at(one.points[-1][0])
        area = f"M{first:.1f} {up.start:.1f} L{steps} L{last:.1f} {up.start:.1f}Z"
        drawn.insert(0, tag("path", class_=f"area tone-{one.tone}", d=area))
    return drawn


def _dots(one: Series, across: Scale, up: Scale, x: Axis, y: Axis) -> list[Html]:
    return [
        hinted(
            "circle", f"{one.name}: {x.form(at)} → {y.form(value)}",
            class_=f"dot tone-{one.tone}", cx=across.at(at), cy=up.at(value), r=3.5,
        )
        for at, value in one.points
    ]  # fmt: skip


def _level(name: str, y: float, across: Scale) -> list[Html]:
    x = across.end - text_width(name) - 2
    return [
        tag("line", class_="mark", x1=across.start, x2=across.end, y1=y, y2=y),
        tag("text", text(name), class_="tick", x=x, y=y - 4),
    ]
