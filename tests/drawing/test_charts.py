"""The charts are well-formed, stay within their frame, and show each value once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing import (
    Axis,
    Bar,
    Dot,
    Html,
    Series,
    Slice,
    Strip,
    bars,
    donut,
    lines,
    scatter,
    strips,
)
from ctxgc.errors import InputError

VALUE = st.floats(-1e6, 1e6)
NAME = st.text(max_size=30)
SPAN = st.none() | st.tuples(VALUE, VALUE)
DOTS = st.lists(
    st.builds(Dot, NAME, VALUE, VALUE, st.just("red"), NAME, SPAN, SPAN, st.booleans()), max_size=20
)


def _marks(drawn: Html, *kinds: str) -> list[Element]:
    root = ElementTree.fromstring(drawn)
    return [e for e in root.iter() if (e.get("class") or "").split(" ")[0] in kinds]


def _hints(drawn: Html) -> list[str | None]:
    return [element.text for element in ElementTree.fromstring(drawn).iter("title")]


def _is_inside(drawn: Html) -> bool:
    root = ElementTree.fromstring(drawn)
    _, _, width, height = map(float, (root.get("viewBox") or "").split())
    across = [float(e.get(key) or 0) for e in root.iter() for key in ("x", "x1", "x2", "cx")]
    down = [float(e.get(key) or 0) for e in root.iter() for key in ("y1", "y2", "cy")]
    return all(-0.1 <= x <= width + 0.1 for x in across) and all(-0.1 <= y <= height for y in down)


@given(st.lists(st.builds(Bar, NAME, VALUE, st.just("blue"), NAME, SPAN), max_size=20))
def test_bars_show_each_item_inside_the_frame(items: list[Bar]) -> None:
    drawn = bars(items, title="t", mark=1.0)
    assert len(_marks(drawn, "fill")) == len(items)
    assert len(_marks(drawn, "whisker")) == sum(item.span is not None for item in items)
    assert _is_inside(drawn)


@given(DOTS)
def test_a_scatter_shows_each_point_and_its_name(dots: list[Dot]) -> None:
    drawn = scatter(dots, title="t", groups=[("a", "red"), ("b", "blue")], with_front=True)
    rings = sum(dot.hollow for dot in dots)
    assert len(_marks(drawn, "ring")) == rings
    assert len(_marks(drawn, "dot")) == len(dots) - rings + (2 if dots else 0)
    assert len(_marks(drawn, "label")) == len(dots)


@given(st.lists(st.builds(Strip, NAME, st.lists(st.tuples(VALUE, NAME), max_size=9)), max_size=8))
def test_strips_show_each_value_inside_the_frame(rows: list[Strip]) -> None:
    drawn = strips(rows, title="t", mark=0.0)
    assert len(_marks(drawn, "speck")) == sum(len(row.values) for row in rows)
    assert _is_inside(drawn)


@given(st.lists(st.lists(st.tuples(VALUE, VALUE), max_size=9), max_size=4))
def test_lines_show_each_series_and_each_point(series: list[list[tuple[float, float]]]) -> None:
    named = [Series(str(n), points, filled=n == 0) for n, points in enumerate(series)]
    drawn = lines(named, title="t", marks={"goal": 3.0}, dots=True)
    points = sum(map(len, series))
    assert len(_marks(drawn, "line")) == sum(map(bool, series))
    assert len(_hints(drawn)) == points
    assert len(_marks(drawn, "mark")) == (1 if points else 0)


@given(st.lists(st.floats(0, 1e6), max_size=9))
def test_a_donut_shows_each_part_that_is_not_nothing(values: list[float]) -> None:
    whole = sum(values)
    drawn = donut([Slice(str(n), value) for n, value in enumerate(values)], title="t")
    seen = sum(value / whole > 0 for value in values) if whole > 0 else 0
    assert len(_marks(drawn, "fill", "hoop")) == seen


def test_a_hint_says_the_value_in_the_form_of_its_axis() -> None:
    drawn = bars([Bar("a", 0.5)], title="t", axis=Axis("share", lambda value: f"{value:.0%}"))
    assert _hints(drawn) == ["a: 50%"]


def test_the_front_runs_through_the_points_that_nothing_beats_and_leaves_out_hollow_ones() -> None:
    dots = [Dot("a", 1, 1), Dot("b", 2, 3), Dot("c", 3, 2), Dot("oracle", 0, 9, hollow=True)]
    (line,) = _marks(scatter(dots, title="t", with_front=True), "front")
    a, b, _ = _marks(scatter(dots, title="t"), "dot")
    assert line.get("d") == "M" + " ".join(
        f"{float(dot.get(key) or 0):.1f}" for dot in (a, b) for key in ("cx", "cy")
    )


def test_the_names_of_levels_are_right_of_the_curve_aligned_and_apart() -> None:
    drawn = lines(
        [Series("fill", [(0, 0), (9, 99)])], title="t", marks={"low": 70, "high": 95, "top": 96}
    )
    levels = {"low", "high", "top"}
    names = [e for e in ElementTree.fromstring(drawn).iter("text") if e.text in levels]
    (end,) = {float(mark.get("x2") or 0) for mark in _marks(drawn, "mark")}
    assert {float(e.get("x") or 0) for e in names} == {end + 6}
    heights = sorted(float(e.get("y") or 0) for e in names)
    assert min(b - a for a, b in pairwise(heights)) >= 12


def test_long_names_are_above_their_bars_in_a_narrow_drawing_and_keep_their_end() -> None:
    items = [Bar("src/ctxgc/a_rather_long_room/with_a_file_of_a_long_name.py", 2), Bar("b", 1)]
    broad, narrow = (bars(items, title="t", width=width) for width in (1034.0, 350.0))
    left, above = _marks(broad, "name")[0], _marks(narrow, "name")[0]
    assert left.get("text-anchor") == "end"
    assert (above.get("text-anchor"), above.get("x")) == ("start", "2")
    assert (above.text or "").startswith("…")
    assert (above.text or "").endswith("with_a_file_of_a_long_name.py")
    assert _is_inside(narrow)


def test_a_donut_lists_its_parts_below_the_ring_where_it_is_narrow() -> None:
    parts = [Slice("Read", 5), Slice("Bash", 3)]
    for width, is_below in ((560.0, False), (350.0, True)):
        entry = _marks(donut(parts, title="t", width=width), "name")[0]
        assert (float(entry.get("y") or 0) > 200) is is_below


@pytest.mark.parametrize(
    "draw",
    [
        lambda: bars([Bar("x", float("nan"))], title="t"),
        lambda: scatter([Dot("x", 0, float("inf"))], title="t"),
        lambda: strips([Strip("x", [(float("inf"), "")])], title="t"),
        lambda: lines([Series("x", [(0, float("nan"))])], title="t"),
        lambda: donut([Slice("x", -1)], title="t"),
    ],
)
def test_values_that_cannot_be_drawn_are_refused(draw: Callable[[], Html]) -> None:
    with pytest.raises(InputError):
        draw()
