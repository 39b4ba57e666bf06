"""SVG and HTML as text: escaped markup, the frame, axes and legend of charts, and places for labels."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, NewType

from ctxgc.drawing.scales import Scale, short

# -- Markup: a type of its own, so that no text gets into a page unescaped


Html = NewType("Html", str)
"""Markup that is safe to put into a page: made by `text` and `tag`, never from a plain string."""

_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def text(value: object) -> Html:
    """Return a value as escaped text; characters that are not allowed in pages become U+FFFD."""
    return Html(html.escape(_UNFIT.sub("\ufffd", str(value))))


def tag(name: str, *inside: Html, **attributes: object) -> Html:
    """Return an element.

    Attributes are escaped; one that is None is left out. `class_` means class, and an underscore
    within a name a hyphen (`text_anchor`).
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{''.join(inside)}</{name}>")


def joined(parts: Iterable[Html], between: str = "") -> Html:
    """Return pieces of markup as one."""
    return Html(str(text(between)).join(parts))


def _written(value: object) -> object:
    """Round coordinates to a tenth of a pixel: pages stay small and the same everywhere."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


TONES = ("accent", "blue", "teal", "green", "amber", "orange", "red", "violet", "grey")
"""The colours of charts, by name; the page's style sheet has them for light and dark."""

Format = Callable[[float], str]

_LETTER = 7.0
_TICK_ROOM = 90.0


class Axis(NamedTuple):
    """An axis: its label and the format of its values."""

    label: str = ""
    form: Format = short


def drawing(title: str, width: float, height: float, inside: Iterable[Html]) -> Html:
    """Return an SVG that fills its place and says its title to a screen reader."""
    return tag(
        "svg",
        *inside,
        class_="chart",
        width=width,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
    )


def empty(title: str, width: float = 720) -> Html:
    """Return a drawing that says there is nothing to show."""
    said = tag("text", text("nothing to show"), x=width / 2, y=34.0, text_anchor="middle")
    return drawing(title, width, 60, [said])


def hinted(name: str, hint: str, **attributes: object) -> Html:
    """Return a mark that shows a hint when the pointer rests on it."""
    return tag(name, *([tag("title", text(hint))] if hint else []), **attributes)


def tone_at(place: int) -> str:
    """Return the tone of the n-th of many; tones repeat."""
    return TONES[place % len(TONES)]


def text_width(written: str) -> float:
    """Return the approximate width of a label in pixels."""
    return len(written) * _LETTER


def x_axis(scale: Scale, axis: Axis, top: float, bottom: float) -> list[Html]:
    """Return the vertical grid lines with their values below, and the label of the axis."""
    parts: list[Html] = []
    for value in scale.ticks(round(min(max((scale.end - scale.start) / _TICK_ROOM, 2), 10))):
        x = scale.at(value)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(_tick(axis.form(value), x, bottom + 16, "middle"))
    middle = (scale.start + scale.end) / 2
    parts.append(
        tag("text", text(axis.label), class_="axis", x=middle, y=bottom + 34, text_anchor="middle")
    )
    return parts


def y_axis(scale: Scale, axis: Axis, left: float, right: float) -> list[Html]:
    """Return the horizontal grid lines with their values at the left; the label is above them."""
    parts: list[Html] = []
    for value in scale.ticks(5):
        y = scale.at(value)
        parts.append(tag("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
        parts.append(_tick(axis.form(value), left - 7, y + 4, "end"))
    parts.append(tag("text", text(axis.label), class_="axis", x=4.0, y=scale.end - 12))
    return parts


def legend(entries: Sequence[tuple[str, str]], left: float, y: float, right: float) -> list[Html]:
    """Return names with the dot of their tone, on as many lines as they need."""
    parts: list[Html] = []
    x = left
    for name, tone in entries:
        if x > left and x + 20 + text_width(name) > right:
            x, y = left, y + 18
        parts.append(tag("circle", class_=f"dot tone-{tone}", cx=x + 5, cy=y - 4, r=5))
        parts.append(tag("text", text(name), class_="tick", x=x + 15, y=y))
        x += 34 + text_width(name)
    return parts


def legend_lines(entries: Sequence[tuple[str, str]], left: float, right: float) -> int:
    """Return how many lines a legend takes."""
    lines, x = 1, left
    for name, _ in entries:
        if x > left and x + 20 + text_width(name) > right:
            lines, x = lines + 1, left
        x += 34 + text_width(name)
    return lines


def _tick(written: str, x: float, y: float, anchor: str) -> Html:
    return tag("text", text(written), class_="tick", x=x, y=y, text_anchor=anchor)


# -- Labels, placed so that they cover neither one another nor a point


Spot = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

_HEIGHT = 12.0
_RADIUS = 6.0
_REACHES = (9.0, 20.0, 34.0, 50.0, 70.0)
_SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))


class LabelPlace(NamedTuple):
    """Where a label goes: the foot of its text, its anchor, and whether it needs a leader line."""

    x: float
    y: float
    anchor: str
    far: bool


def place_labels(names: Sequence[str], spots: Sequence[Spot], within: Box) -> list[LabelPlace]:
    """Return a place for each label: near its point, clear of others, and inside the box if possible."""
    taken: list[Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in spots]
    chosen: dict[int, LabelPlace] = {}
    for number in sorted(range(len(names)), key=lambda n: (spots[n][1], spots[n][0], n)):
        options = list(_options(names[number], spots[number]))
        costs = [_cost(box, taken, within) + rank * 0.5 for rank, (_, box) in enumerate(options)]
        place, box = options[costs.index(min(costs))]
        taken.append(box)
        chosen[number] = place
    return [chosen[number] for number in range(len(names))]


def _options(name: str, spot: Spot) -> Iterator[tuple[LabelPlace, Box]]:
    """Yield the places around a point, nearest first, each with its box."""
    wide = text_width(name)
    for reach in _REACHES:
        for side, rise in _SIDES:
            x = spot[0] + side * reach
            y = spot[1] + rise * reach + 4
            left = {1: x, -1: x - wide, 0: x - wide / 2}[side]
            anchor = {1: "start", -1: "end", 0: "middle"}[side]
            yield LabelPlace(x, y, anchor, reach > 20), (left, y - _HEIGHT + 2, left + wide, y + 2)


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
