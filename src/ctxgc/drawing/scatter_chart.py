"""A scatter of named points, with the front of those that nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxgc.drawing.frame import (
    Axis,
    drawing,
    empty,
    hinted,
    legend,
    legend_lines,
    x_axis,
    y_axis,
)
from ctxgc.drawing.front import front
from ctxgc.drawing.labels import Place, placed
from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import Scale, checked, fitted

TOP = 30.0


class Dot(NamedTuple):
    """A point: where it stands, its name, the tone, a hint, and the span of each value if known."""

    name: str
    x: float
    y: float
    tone: str = "accent"
    hint: str = ""
    x_span: tuple[float, float] | None = None
    y_span: tuple[float, float] | None = None
    hollow: bool = False


def scatter(
    dots: Sequence[Dot], *, title: str, x: Axis | None = None, y: Axis | None = None,
    groups: Sequence[tuple[str, str]] = (), with_front: bool = False,
    width: float = 720, height: float = 440,
) -> Html:  # fmt: skip
    """Return a chart with a named point per dot.

    Args:
        dots: the points.
        title: what the chart shows, for those who cannot see it.
        x: label and form of the values along the bottom.
        y: label and form of the values at the left.
        groups: names and tones for a legend.
        with_front: draw the line through the points that no other beats, less x and more y being
            better. Hollow points do not count: they only show what could be reached.
        width: of the drawing in pixels; it shrinks with the page.
        height: of the drawing.
    """
    if not dots:
        return empty(title, width)
    x, y, left = x or Axis(), y or Axis(), 52.0
    xs, ys = _all(dots, "x"), _all(dots, "y")
    checked(xs + ys, "dots")
    rows = legend_lines(groups, left, width - 12) if groups else 0
    bottom = height - 44 - 18 * rows
    across, up = fitted(xs, left, width - 14), fitted(ys, bottom, TOP)
    spots = [(across.at(dot.x), up.at(dot.y)) for dot in dots]
    names = placed([dot.name for dot in dots], spots, (left, TOP, width - 4, bottom))
    parts = [
        *x_axis(across, x, TOP, bottom),
        *y_axis(up, y, left, width - 14),
        *([_front(dots, spots)] if with_front else []),
        *(part for dot in dots for part in _spans(dot, across, up)),
        *(_leader(spot, name) for spot, name in zip(spots, names, strict=True) if name.far),
        *(_dot(dot, spot, x, y) for dot, spot in zip(dots, spots, strict=True)),
        *(_name(dot, name) for dot, name in zip(dots, names, strict=True)),
        *legend(groups, left, bottom + 54, width - 12),
    ]
    return drawing(title, width, height, parts)


def _all(dots: Sequence[Dot], side: str) -> list[float]:
    if side == "x":
        return [value for dot in dots for value in (dot.x, *(dot.x_span or ()))]
    return [value for dot in dots for value in (dot.y, *(dot.y_span or ()))]


def _front(dots: Sequence[Dot], spots: Sequence[tuple[float, float]]) -> Html:
    real = [place for place, dot in enumerate(dots) if not dot.hollow]
    best = front([(dots[place].x, dots[place].y) for place in real])
    steps = " ".join(f"{spots[real[i]][0]:.1f} {spots[real[i]][1]:.1f}" for i in best)
    return tag("path", class_="front", d=f"M{steps}" if best else "")


def _spans(dot: Dot, across: Scale, up: Scale) -> list[Html]:
    x, y = across.at(dot.x), up.at(dot.y)
    drawn = []
    if dot.x_span:
        low, high = map(across.at, dot.x_span)
        drawn.append(tag("line", class_=f"span tone-{dot.tone}", x1=low, x2=high, y1=y, y2=y))
    if dot.y_span:
        low, high = map(up.at, dot.y_span)
        drawn.append(tag("line", class_=f"span tone-{dot.tone}", x1=x, x2=x, y1=low, y2=high))
    return drawn


def _leader(spot: tuple[float, float], name: Place) -> Html:
    return tag("line", class_="leader", x1=spot[0], y1=spot[1], x2=name.x, y2=name.y - 4)


def _dot(dot: Dot, spot: tuple[float, float], x: Axis, y: Axis) -> Html:
    hint = dot.hint or f"{dot.name}: {x.form(dot.x)}, {y.form(dot.y)}"
    kind = "ring" if dot.hollow else "dot"
    return hinted("circle", hint, class_=f"{kind} tone-{dot.tone}", cx=spot[0], cy=spot[1], r=5)


def _name(dot: Dot, name: Place) -> Html:
    return tag("text", text(dot.name), class_="label", x=name.x, y=name.y, text_anchor=name.anchor)
