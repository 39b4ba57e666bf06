"""Bars: one value per name, level, with a span of uncertainty where one is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from ctxgc.drawing.frame import Axis, drawing, empty, hinted, text_width, x_axis
from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import Scale, checked, fitted

ROW = 26.0
TOP = 6.0


class Bar(NamedTuple):
    """A bar: a name, a value, the tone, a hint for the pointer, and the span that it may lie in."""

    name: str
    value: float
    tone: str = "accent"
    hint: str = ""
    span: tuple[float, float] | None = None


def bars(
    items: Sequence[Bar], *, title: str, axis: Axis | None = None, mark: float | None = None,
    width: float = 720,
) -> Html:  # fmt: skip
    """Return a chart with one level bar per item, in the order given.

    Args:
        items: the bars.
        title: what the chart shows, for those who cannot see it.
        axis: the label of the values and how they are written.
        mark: a value to draw a line at, for example 1 for "as before".
        width: of the drawing in pixels; it shrinks with the page.
    """
    if not items:
        return empty(title, width)
    axis = axis or Axis()
    values = [*chain.from_iterable(_values(item) for item in items), *_known(mark)]
    checked(values, "bars")
    left = 14 + min(max(text_width(item.name) for item in items), width * 0.4)
    scale = fitted(values, left, width - 70, floor=0.0)
    bottom = TOP + ROW * len(items)
    rows = [part for place, item in enumerate(items) for part in _row(item, place, scale, axis)]
    line = [_mark(scale.at(value), bottom) for value in _known(mark)]
    parts = [*x_axis(scale, axis, TOP, bottom), *rows, *line]
    return drawing(title, width, bottom + 42, parts)


def _values(item: Bar) -> tuple[float, ...]:
    return (item.value, *(item.span or ()))


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _row(item: Bar, place: int, scale: Scale, axis: Axis) -> list[Html]:
    y = TOP + ROW * place
    zero, end = scale.at(0.0), scale.at(item.value)
    name = tag(
        "text", text(item.name), class_="name", x=scale.start - 8, y=y + 17, text_anchor="end"
    )
    hint = item.hint or f"{item.name}: {axis.form(item.value)}"
    drawn = hinted(
        "rect", hint, class_=f"fill tone-{item.tone}",
        x=min(zero, end), y=y + 5, width=max(abs(end - zero), 0.5), height=ROW - 10, rx=2,
    )  # fmt: skip
    reach = max([end, *(scale.at(value) for value in item.span or ())])
    value = tag("text", text(axis.form(item.value)), class_="tick", x=reach + 6, y=y + 17)
    return [name, drawn, *_whisker(item, y + ROW / 2, scale), value]


def _whisker(item: Bar, y: float, scale: Scale) -> list[Html]:
    if item.span is None:
        return []
    low, high = (scale.at(value) for value in item.span)
    path = f"M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8"
    return [tag("path", class_="whisker", d=path)]


def _mark(x: float, bottom: float) -> Html:
    return tag("line", class_="mark", x1=x, x2=x, y1=TOP, y2=bottom)
