"""Fitting: the same seed gives the same constants, and only what does better is kept."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab import FIT_TARGETS, Measures, fit_constants, fit_target
from ctxgc.lab.fit import changed, scaled
from ctxgc.lab.fit_targets import Constants

PRESET = fit_target("default")
KEPT: Measures = {
    "bill": 0.7, "strict": 0.99, "clean": 0.999, "line_step": 0.95, "word": 0.9, "worst": 1.0,
}  # fmt: skip


@given(st.integers(0, 10_000), st.sampled_from(FIT_TARGETS))
def test_a_change_is_small_valid_and_touches_no_promise(seed: int, name: str) -> None:
    about = fit_target(name)
    start = about.start()
    other = changed(about, start, random.Random(seed))
    moved = {key for key in start if start[key] != other[key]}
    assert len(moved) <= 3
    assert moved.isdisjoint(about.fixed)
    assert all(other[key] <= about.most(key) for key in moved)
    assert about.file(other, "made")  # raises where a value is not allowed


def test_the_same_seed_tries_the_same_changes() -> None:
    tried = [changed(PRESET, PRESET.start(), random.Random(4)) for _ in range(2)]
    assert tried[0] == tried[1] != PRESET.start()


@pytest.mark.parametrize(
    ("value", "factor", "most", "expected"),
    [(6, 0.5, 9.0, 3), (1, 0.1, 9.0, 1), (0.8, 2.0, 1.0, 1.0), (5.0, 0.123456, 9.0, 0.6173)],
)
def test_a_multiple_stays_of_its_kind(
    value: float, factor: float, most: float, expected: float
) -> None:
    found = scaled(value, factor, most)
    assert (found, type(found)) == (expected, type(value))


def test_the_search_keeps_what_is_better_and_tells_it() -> None:
    told: list[tuple[int, float]] = []

    def judge(constants: Constants) -> Measures:
        return {**KEPT, "bill": constants["hold"] / 10}

    best, found = fit_constants(
        PRESET, judge, rounds=80, seed=3, tell=lambda n, r: told.append((n, r["bill"]))
    )
    assert found == judge(best)
    assert best["hold"] < PRESET.start()["hold"]
    assert told[0] == (0, PRESET.start()["hold"] / 10)
    bills = [bill for _, bill in told]
    assert bills == sorted(bills, reverse=True)
    assert fit_constants(PRESET, judge, rounds=80, seed=3, tell=lambda n, r: None) == (best, found)


def test_no_rounds_leave_the_constants_as_they_are() -> None:
    found = fit_constants(PRESET, lambda _: KEPT, rounds=0, seed=1, tell=lambda n, r: None)
    assert found == (PRESET.start(), KEPT)
