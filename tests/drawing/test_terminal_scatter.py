"""A scatter of letters, character by character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing import ScatterPoint, terminal_scatter, text_of
from ctxgc.errors import InputError

VALUE = st.floats(-1e6, 1e6)


def test_capitals_are_the_points_that_no_rival_beats() -> None:
    points = [
        ScatterPoint("cheap", 0.4, 70), ScatterPoint("ours", 0.6, 99), ScatterPoint("worse", 0.8, 80),
        ScatterPoint("never", 1.0, 100), ScatterPoint("oracle", 0.4, 100, rival=False),
    ]  # fmt: skip
    drawn = [
        text_of(line).rstrip()
        for line in terminal_scatter(points, x="bill", y="clean", width=38, height=6)
    ]
    assert drawn == [
        "  clean",
        "   100 │··b·······B················C··",
        "       │",
        "    90 │······························",
        "    80 │···················a··········",
        "       │",
        "    70 │··A···························",
        "       └──┴───────┴────────┴───────┴──",
        "         0.4     0.6      0.8      1",
        "                                  bill",
        "        A cheap     B ours",
        "        a worse     C never",
        "        b oracle",
    ]  # fmt: skip


def test_no_points_draw_nothing() -> None:
    assert terminal_scatter([], x="x", y="y") == []


def test_a_point_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="points"):
        terminal_scatter([ScatterPoint("a", float("nan"), 1)], x="x", y="y")


@given(
    st.lists(
        st.builds(ScatterPoint, st.text("ab", max_size=9), VALUE, VALUE), min_size=1, max_size=70
    )
)
def test_all_rows_have_the_width_asked_for(points: list[ScatterPoint]) -> None:
    lines = terminal_scatter(points, x="x", y="y", width=48, height=9, key=False)
    assert [len(text_of(line)) for line in lines[1:10]] == [48] * 9
