"""Sizes are counted for a sample, and estimated by its rate from then on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.insight.survey import LONGEST_SAMPLE, Sizer


def _quarter(text: str) -> int:
    return len(text) // 4


@given(st.lists(st.integers(min_value=400, max_value=3_000), max_size=30))
def test_the_estimate_stays_near_the_truth_for_one_kind_of_text(sizes: list[int]) -> None:
    sizer = Sizer(_quarter, sample=2_000)
    found = [sizer.text("x" * size) for size in sizes]
    truth = [size // 4 for size in sizes]
    assert abs(sum(found) - sum(truth)) <= 0.01 * sum(truth) + len(sizes)


def test_nothing_is_estimated_without_a_sample_size() -> None:
    sizer = Sizer(_quarter, sample=None)
    assert sizer.text("x" * 1_000_000) == 250_000
    assert sizer.estimated == 0


def test_of_a_very_long_text_only_the_beginning_is_counted() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    sizer = Sizer(count)
    assert sizer.text("x" * 100_000) == 25_000
    assert counted == [LONGEST_SAMPLE]
    assert sizer.estimated == 20_000
