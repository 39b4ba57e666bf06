"""A donut: the parts of a whole, with their names and shares beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ctxgc.drawing.frame import drawing, empty, hinted
from ctxgc.drawing.markup import Html, tag, text
from ctxgc.drawing.scales import checked, short
from ctxgc.errors import InputError

OUTER, INNER, MIDDLE = 92.0, 58.0, 104.0


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
        title: what the chart shows, for those who cannot see it.
        centre: a short text in the middle, for example the sum.
        unit: written after each value in the list.
        width: of the drawing in pixels; it shrinks with the page.
    """
    checked([part.value for part in slices], "slices")
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
        parts += _entry(part, place, f"{short(part.value)}{unit} · {share:.0%}", width)
        begin += share
    parts.append(
        tag("text", text(centre), class_="centre", x=MIDDLE, y=MIDDLE + 6, text_anchor="middle")
    )
    return drawing(title, width, max(2 * MIDDLE, 40 + 24 * len(slices)), parts)


def _ring(begin: float, end: float, tone: str, hint: str) -> Html:
    """Return one part of the ring; a full circle has no arc of its own and becomes a stroke."""
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


def _entry(part: Slice, place: int, said: str, width: float) -> list[Html]:
    y = 34.0 + 24 * place
    left = 2 * MIDDLE + 16
    return [
        tag("circle", class_=f"dot tone-{part.tone}", cx=left, cy=y - 4, r=5),
        tag("text", text(part.name), class_="name", x=left + 12, y=y),
        tag("text", text(said), class_="tick", x=width - 6, y=y, text_anchor="end"),
    ]
