"""Scales show everything, and their ticks are round."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing import dollars_text, short
from ctxgc.drawing.scales import check_finite, distinct_labels, fitted_scale, ticks
from ctxgc.errors import InputError

VALUES = st.floats(-1e9, 1e9).map(lambda value: round(value, 3))


@given(st.lists(VALUES, min_size=1), st.booleans())
def test_every_value_stands_within_the_scale(values: list[float], from_zero: bool) -> None:
    scale = fitted_scale(values, 10.0, 110.0, floor=0.0 if from_zero else None)
    assert all(10.0 - 1e-6 <= scale.at(value) <= 110.0 + 1e-6 for value in values)


@given(st.lists(VALUES, min_size=1))
def test_ticks_rise_evenly_and_stay_within(values: list[float]) -> None:
    scale = fitted_scale(values, 0.0, 1.0)
    marks = scale.ticks()
    assert 1 <= len(marks) <= 13
    assert all(
        scale.low - 1e-6 * abs(scale.low) <= m <= scale.high + 1e-6 * abs(scale.high) for m in marks
    )
    steps = {round((b - a) / (marks[1] - marks[0]), 6) for a, b in pairwise(marks)}
    assert steps <= {1.0}


def test_ticks_are_round_numbers() -> None:
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(0.38, 2.2) == [0.5, 1.0, 1.5, 2.0]
    assert ticks(-3, 17, 4) == [0.0, 5.0, 10.0, 15.0]


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (0.25, "0.25"), (1, "1"), (12.34, "12.3"), (999.4, "999"), (999.7, "1k"),
     (1234, "1.23k"), (-2_500_000, "-2.5M"), (3e9, "3G"), (1e-9, "0")],
)  # fmt: skip
def test_a_number_takes_few_characters(value: float, written: str) -> None:
    assert short(value) == written


@pytest.mark.parametrize(
    ("dollars", "written"),
    [(0, "$0.00"), (25.53, "$25.53"), (0.0042, "$0.0042"), (-1234.5, "-$1,234.50"), (-0.0042, "-$0.0042")],
)  # fmt: skip
def test_an_amount_has_its_sign_before_the_dollar(dollars: float, written: str) -> None:
    assert dollars_text(dollars) == written


def test_the_values_of_an_axis_get_the_digits_that_tell_them_apart() -> None:
    assert distinct_labels([99.0, 99.5, 100.0]) == ["99", "99.5", "100"]
    assert distinct_labels([99.9, 99.925, 99.95, 100.0]) == ["99.9", "99.925", "99.95", "100"]
    assert distinct_labels([]) == []


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_no_chart_can_show_is_refused_by_name(value: float) -> None:
    with pytest.raises(InputError, match="`bars`") as caught:
        check_finite([1.0, value], "bars")
    assert caught.value.details == {"field": "bars"}
