"""Strips: all single values of each name on one line, with their middle and their middle half."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

from ctxgc.drawing.frame import Axis, drawing, empty, hinted, text_width, x_axis
from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import Scale, checked, fitted

ROW = 30.0
TOP = 6.0


class Strip(NamedTuple):
    """A strip: a name, its values, each with a hint, and the tone."""

    name: str
    values: Sequence[tuple[float, str]]
    tone: str = "accent"


def strips(
    rows: Sequence[Strip], *, title: str, axis: Axis | None = None, mark: float | None = None,
    width: float = 720,
) -> Html:  # fmt: skip
    """Return a chart that shows how the values of each row are spread.

    Args:
        rows: the strips, drawn in the order given.
        title: what the chart shows, for those who cannot see it.
        axis: the label of the values and how they are written.
        mark: a value to draw a line at.
        width: of the drawing in pixels; it shrinks with the page.
    """
    values = [value for row in rows for value, _ in row.values]
    if not values:
        return empty(title, width)
    known = values + ([] if mark is None else [mark])
    checked(known, "strips")
    left = 14 + min(max(text_width(row.name) for row in rows), width * 0.4)
    scale, bottom = fitted(known, left, width - 16), TOP + ROW * len(rows)
    parts = [*x_axis(scale, axis or Axis(), TOP, bottom)]
    for place, row in enumerate(rows):
        parts += _strip(row, TOP + ROW * place + ROW / 2, scale)
    if mark is not None:
        x = scale.at(mark)
        parts.append(tag("line", class_="mark", x1=x, x2=x, y1=TOP, y2=bottom))
    return drawing(title, width, bottom + 42, parts)


def _strip(row: Strip, y: float, scale: Scale) -> list[Html]:
    name = tag("text", text(row.name), class_="name", x=scale.start - 8, y=y + 4, text_anchor="end")
    if not row.values:
        return [name]
    low, middle, high = _quarters([value for value, _ in row.values])
    left, right = scale.at(low), scale.at(high)
    half = tag(
        "rect", class_=f"area tone-{row.tone}",
        x=left, y=y - 9, width=max(right - left, 1.0), height=18.0, rx=3,
    )  # fmt: skip
    at = scale.at(middle)
    line = tag("line", class_=f"line tone-{row.tone}", x1=at, x2=at, y1=y - 10, y2=y + 10)
    dots = [
        hinted(
            "circle", hint, class_=f"speck tone-{row.tone}",
            cx=scale.at(value), cy=y + _wobble(number), r=3,
        )
        for number, (value, hint) in enumerate(row.values)
    ]  # fmt: skip
    return [name, half, *dots, line]


def _quarters(values: list[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _wobble(number: int) -> float:
    """Return a small shift up or down, so that equal values stay apart; the same each time."""
    return (number * 7 % 5 - 2) * 2.4
