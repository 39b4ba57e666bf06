"""The charts: each function takes plain values and returns SVG to put on a page."""

from __future__ import annotations

from ctxgc.drawing.bar_chart import Bar, bars
from ctxgc.drawing.donut_chart import Slice, donut
from ctxgc.drawing.frame import TONES, Axis, tone_at
from ctxgc.drawing.line_chart import Series, lines
from ctxgc.drawing.scales import short
from ctxgc.drawing.scatter_chart import Dot, scatter
from ctxgc.drawing.strip_chart import Strip, strips

__all__ = [
    "TONES",
    "Axis",
    "Bar",
    "Dot",
    "Series",
    "Slice",
    "Strip",
    "bars",
    "donut",
    "lines",
    "scatter",
    "short",
    "strips",
    "tone_at",
]
