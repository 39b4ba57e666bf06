"""What every chart has: the SVG around it, its axes and its legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import Scale, short

TONES = ("accent", "blue", "teal", "green", "amber", "orange", "red", "violet", "grey")
"""The colours of charts, by name; the page's style sheet has them for light and dark."""

Format = Callable[[float], str]

_LETTER = 7.0


class Axis(NamedTuple):
    """An axis: what it shows and how its values are written."""

    label: str = ""
    form: Format = short


def drawing(title: str, width: float, height: float, inside: Iterable[Html]) -> Html:
    """Return an SVG that shrinks with its page and says its title to a screen reader."""
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
    """Return a drawing that says there is nothing to draw."""
    said = tag("text", text("nothing to show"), x=width / 2, y=34.0, text_anchor="middle")
    return drawing(title, width, 60, [said])


def hinted(name: str, hint: str, **attributes: object) -> Html:
    """Return a mark that shows a hint when the pointer rests on it."""
    return tag(name, *([tag("title", text(hint))] if hint else []), **attributes)


def tone_at(place: int) -> str:
    """Return the tone of the n-th of many; they come round again."""
    return TONES[place % len(TONES)]


def text_width(written: str) -> float:
    """Return about how wide a label is, in pixels."""
    return len(written) * _LETTER


def x_axis(scale: Scale, axis: Axis, top: float, bottom: float) -> list[Html]:
    """Return the upright grid lines with their values below, and the label of the axis."""
    parts: list[Html] = []
    for value in scale.ticks():
        x = scale.at(value)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(_tick(axis.form(value), x, bottom + 16, "middle"))
    middle = (scale.start + scale.end) / 2
    parts.append(
        tag("text", text(axis.label), class_="axis", x=middle, y=bottom + 34, text_anchor="middle")
    )
    return parts


def y_axis(scale: Scale, axis: Axis, left: float, right: float) -> list[Html]:
    """Return the level grid lines with their values at the left; the label stands above them."""
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
