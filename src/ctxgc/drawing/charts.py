"""The charts: each function takes plain values and returns SVG to put on a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import quantiles
from typing import NamedTuple

from ctxgc.drawing.layout import shortened
from ctxgc.drawing.scales import Scale, check_finite, fitted_scale, pareto_front, short
from ctxgc.drawing.svg import (
    Axis,
    Html,
    LabelPlace,
    drawing,
    empty,
    hinted,
    legend,
    legend_lines,
    place_labels,
    tag,
    text,
    text_width,
    x_axis,
    y_axis,
)
from ctxgc.errors import InputError

# -- Bars


_BAR_ROW = 26.0
_BAR_TOP = 6.0
_NAME_ROW = 17.0
_MOST_FOR_NAMES = 0.4


class Bar(NamedTuple):
    """A bar: a name, a value, the tone, a hint for the pointer, and its span of uncertainty."""

    name: str
    value: float
    tone: str = "accent"
    hint: str = ""
    span: tuple[float, float] | None = None


def bars(
    items: Sequence[Bar], *, title: str, axis: Axis | None = None, mark: float | None = None,
    width: float = 720,
) -> Html:  # fmt: skip
    """Return a chart with one horizontal bar per item, in the order given.

    Args:
        items: the bars.
        title: what the chart shows, for screen readers.
        axis: the label and the format of the values.
        mark: a value to draw a line at, for example 1 for "as before".
        width: the width in pixels.
    """
    if not items:
        return empty(title, width)
    axis = axis or Axis()
    values = [*chain.from_iterable(_values(item) for item in items), *_known(mark)]
    check_finite(values, "bars")
    names = _Names([item.name for item in items], width, _BAR_ROW, _BAR_TOP)
    scale = fitted_scale(values, names.left, width - 70, floor=0.0)
    bottom = names.bottom
    rows = [
        part
        for place, item in enumerate(items)
        for part in (names.written(place), *_row(item, names.top(place), scale, axis))
    ]
    line = [_mark(scale.at(value), bottom) for value in _known(mark)]
    parts = [*x_axis(scale, axis, _BAR_TOP, bottom), *rows, *line]
    return drawing(title, width, bottom + 42, parts)


class _Names:
    """The names of rows: at the left, or above each row where they would take too much of the width."""

    def __init__(self, names: Sequence[str], width: float, row: float, start: float) -> None:
        longest = max(map(text_width, names))
        self._above = longest > width * _MOST_FOR_NAMES
        self._names, self._row, self._start, self._room = names, row, start, width - 4
        self.left = 4.0 if self._above else 14 + longest

    @property
    def bottom(self) -> float:
        """Where the last row ends."""
        return self._start + self._step * len(self._names)

    def top(self, place: int) -> float:
        """Return where a row begins, below its name if that is above it."""
        return self._start + self._step * place + (_NAME_ROW if self._above else 0.0)

    def written(self, place: int) -> Html:
        """Return the name of a row, cut where it would leave the drawing."""
        name = self._names[place]
        x, y = self.left - 8, self.top(place) + self._row / 2 + 4
        if self._above:
            x, y = 2.0, self.top(place) + 1
            name = shortened(name, int(self._room // text_width("x")), keep="end")
        anchor = "start" if self._above else "end"
        return tag("text", text(name), class_="name", x=x, y=y, text_anchor=anchor)

    @property
    def _step(self) -> float:
        return self._row + (_NAME_ROW if self._above else 0.0)


def _values(item: Bar) -> tuple[float, ...]:
    return (item.value, *(item.span or ()))


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]


def _row(item: Bar, y: float, scale: Scale, axis: Axis) -> list[Html]:
    zero, end = scale.at(0.0), scale.at(item.value)
    hint = item.hint or f"{item.name}: {axis.form(item.value)}"
    drawn = hinted(
        "rect", hint, class_=f"fill tone-{item.tone}",
        x=min(zero, end), y=y + 5, width=max(abs(end - zero), 0.5), height=_BAR_ROW - 10, rx=2,
    )  # fmt: skip
    reach = max([end, *(scale.at(value) for value in item.span or ())])
    value = tag("text", text(axis.form(item.value)), class_="tick", x=reach + 6, y=y + 17)
    return [drawn, *_whisker(item, y + _BAR_ROW / 2, scale), value]


def _whisker(item: Bar, y: float, scale: Scale) -> list[Html]:
    if item.span is None:
        return []
    low, high = (scale.at(value) for value in item.span)
    path = f"M{low:.1f} {y - 4:.1f}v8M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 4:.1f}v8"
    return [tag("path", class_="whisker", d=path)]


def _mark(x: float, bottom: float) -> Html:
    return tag("line", class_="mark", x1=x, x2=x, y1=_BAR_TOP, y2=bottom)


# -- Donut


OUTER, INNER, MIDDLE = 92.0, 58.0, 104.0
_ENTRY_ROW = 24.0
_ENTRY_ROOM = 230.0
_ENTRY_MOST = 360.0


class Slice(NamedTuple):
    """A part of the whole: a name, its size, and the tone."""

    name: str
    value: float
    tone: str = "accent"


def donut(
    slices: Sequence[Slice], *, title: str, centre: str = "", unit: str = "", width: float = 460
) -> Html:
    """Return a ring of the parts, in the order given, with a list of their names and shares.

    Args:
        slices: the parts; their values are not negative.
        title: what the chart shows, for screen readers.
        centre: a short text in the middle, for example the sum.
        unit: written after each value in the list.
        width: the width in pixels.
    """
    check_finite([part.value for part in slices], "slices")
    if any(part.value < 0 for part in slices):
        raise InputError("a part of a whole cannot be negative", hint="draw bars", field="slices")
    whole = sum(part.value for part in slices)
    if whole <= 0:
        return empty(title, width)
    parts: list[Html] = []
    begin = 0.0
    for place, part in enumerate(slices):
        share = part.value / whole
        said = f"{part.name}: {short(part.value)}{unit} ({share:.0%})"
        if share > 0:
            parts.append(_ring(begin, begin + share, part.tone, said))
        parts += _entry(
            part, f"{short(part.value)}{unit} · {share:.0%}", *_entry_place(place, width)
        )
        begin += share
    parts.append(
        tag("text", text(centre), class_="centre", x=MIDDLE, y=MIDDLE + 6, text_anchor="middle")
    )
    last = _entry_place(len(slices) - 1, width)[1] + 16
    return drawing(title, width, max(2 * MIDDLE, last), parts)


def _ring(begin: float, end: float, tone: str, hint: str) -> Html:
    """Return one part of the ring; a full circle cannot be an arc and becomes a stroke."""
    if end - begin > 0.9999:
        return hinted(
            "circle", hint, class_=f"hoop tone-{tone}",
            cx=MIDDLE, cy=MIDDLE, r=(OUTER + INNER) / 2, stroke_width=OUTER - INNER,
        )  # fmt: skip
    large = int(end - begin > 0.5)
    (ax, ay), (bx, by) = _at(begin, OUTER), _at(end, OUTER)
    (cx, cy), (dx, dy) = _at(end, INNER), _at(begin, INNER)
    path = (
        f"M{ax:.1f} {ay:.1f}A{OUTER} {OUTER} 0 {large} 1 {bx:.1f} {by:.1f}"
        f"L{cx:.1f} {cy:.1f}A{INNER} {INNER} 0 {large} 0 {dx:.1f} {dy:.1f}Z"
    )
    return hinted("path", hint, class_=f"fill tone-{tone}", d=path)


def _at(share: float, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * share
    return MIDDLE + radius * math.sin(angle), MIDDLE - radius * math.cos(angle)


def _entry_place(place: int, width: float) -> tuple[float, float, float]:
    """Return the left end, the foot and the right end of an entry: next to the ring, or below it."""
    left = 2 * MIDDLE + 16
    if width - left < _ENTRY_ROOM:
        return 8.0, 2 * MIDDLE + 18 + _ENTRY_ROW * place, width - 6
    return left, 34 + _ENTRY_ROW * place, min(width - 6, left + _ENTRY_MOST)


def _entry(part: Slice, said: str, left: float, y: float, right: float) -> list[Html]:
    return [
        tag("circle", class_=f"dot tone-{part.tone}", cx=left, cy=y - 4, r=5),
        tag("text", text(part.name), class_="name", x=left + 12, y=y),
        tag("text", text(said), class_="tick", x=right, y=y, text_anchor="end"),
    ]


# -- Lines


_LINE_TOP = 30.0


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
        title: what the chart shows, for screen readers.
        x: the axis along the bottom.
        y: the axis at the left.
        marks: named levels, drawn as dashed lines.
        floor: where the left axis begins; None for just below the smallest value.
        dots: whether each point is shown, with its values as a hint.
        width: the width in pixels.
        height: of the drawing.
    """
    points = [point for one in series for point in one.points]
    if not points:
        return empty(title, width)
    x, y, marks = x or Axis(), y or Axis(), dict(marks or {})
    check_finite([value for point in points for value in point] + list(marks.values()), "lines")
    names = [(one.name, one.tone) for one in series] if len(series) > 1 else []
    left = 46.0
    bottom = height - 44 - 18 * (legend_lines(names, left, width - 12) if names else 0)
    right = width - 14 - max((text_width(name) for name in marks), default=0.0)
    across = fitted_scale([p[0] for p in points], left, right)
    up = fitted_scale([p[1] for p in points] + list(marks.values()), bottom, _LINE_TOP, floor=floor)
    parts = [
        *x_axis(across, x, _LINE_TOP, bottom),
        *y_axis(up, y, left, right),
        *(part for one in series for part in _line(one, across, up)),
        *(dot for one in series if dots for dot in _dots(one, across, up, x, y)),
        *_levels({name: up.at(level) for name, level in marks.items()}, across),
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


def _levels(marks: Mapping[str, float], across: Scale) -> list[Html]:
    """Return the named levels, with their names at the right of the curves and clear of each other."""
    parts: list[Html] = []
    free = math.inf
    for name, y in sorted(marks.items(), key=lambda mark: -mark[1]):
        free = min(y, free - _NAME_ROW * 0.8)
        parts.append(tag("line", class_="mark", x1=across.start, x2=across.end, y1=y, y2=y))
        parts.append(tag("text", text(name), class_="tick", x=across.end + 6, y=free + 4))
    return parts


# -- Scatter


_SCATTER_TOP = 30.0


class Dot(NamedTuple):
    """A point: its name, its place, the tone, a hint, and the span of each value if known."""

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
        title: what the chart shows, for screen readers.
        x: the axis along the bottom.
        y: the axis at the left.
        groups: names and tones for a legend.
        with_front: draw the line through the points that no other beats, less x and more y being
            better. Hollow points do not count: they only show what is possible.
        width: the width in pixels.
        height: of the drawing.
    """
    if not dots:
        return empty(title, width)
    x, y, left = x or Axis(), y or Axis(), 52.0
    xs, ys = _all(dots, "x"), _all(dots, "y")
    check_finite(xs + ys, "dots")
    rows = legend_lines(groups, left, width - 12) if groups else 0
    bottom = height - 44 - 18 * rows
    across, up = fitted_scale(xs, left, width - 14), fitted_scale(ys, bottom, _SCATTER_TOP)
    spots = [(across.at(dot.x), up.at(dot.y)) for dot in dots]
    names = place_labels([dot.name for dot in dots], spots, (left, _SCATTER_TOP, width - 4, bottom))
    parts = [
        *x_axis(across, x, _SCATTER_TOP, bottom),
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
    best = pareto_front([(dots[place].x, dots[place].y) for place in real])
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


def _leader(spot: tuple[float, float], name: LabelPlace) -> Html:
    return tag("line", class_="leader", x1=spot[0], y1=spot[1], x2=name.x, y2=name.y - 4)


def _dot(dot: Dot, spot: tuple[float, float], x: Axis, y: Axis) -> Html:
    hint = dot.hint or f"{dot.name}: {x.form(dot.x)}, {y.form(dot.y)}"
    kind = "ring" if dot.hollow else "dot"
    return hinted("circle", hint, class_=f"{kind} tone-{dot.tone}", cx=spot[0], cy=spot[1], r=5)


def _name(dot: Dot, name: LabelPlace) -> Html:
    return tag("text", text(dot.name), class_="label", x=name.x, y=name.y, text_anchor=name.anchor)


# -- Strips


_STRIP_ROW = 30.0
_STRIP_TOP = 6.0


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
        title: what the chart shows, for screen readers.
        axis: the label and the format of the values.
        mark: a value to draw a line at.
        width: the width in pixels.
    """
    values = [value for row in rows for value, _ in row.values]
    if not values:
        return empty(title, width)
    known = values + ([] if mark is None else [mark])
    check_finite(known, "strips")
    names = _Names([row.name for row in rows], width, _STRIP_ROW, _STRIP_TOP)
    scale, bottom = fitted_scale(known, names.left, width - 16), names.bottom
    parts = [*x_axis(scale, axis or Axis(), _STRIP_TOP, bottom)]
    for place, row in enumerate(rows):
        parts += [names.written(place), *_strip(row, names.top(place) + _STRIP_ROW / 2, scale)]
    if mark is not None:
        x = scale.at(mark)
        parts.append(tag("line", class_="mark", x1=x, x2=x, y1=_STRIP_TOP, y2=bottom))
    return drawing(title, width, bottom + 42, parts)


def _strip(row: Strip, y: float, scale: Scale) -> list[Html]:
    if not row.values:
        return []
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
    return [half, *dots, line]


def _quarters(values: list[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _wobble(number: int) -> float:
    """Return a small shift up or down that keeps equal values apart; the same each time."""
    return (number * 7 % 5 - 2) * 2.4
