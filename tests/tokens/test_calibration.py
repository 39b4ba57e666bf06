from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.tokens import QUORUM, Calibration
from ctxgc.tokens.counter import HIGHEST, LEAST_TOKENS, LOWEST, WINDOW

tokens = st.integers(0, 10**7)


def test_the_scale_is_one_before_any_sample() -> None:
    assert (Calibration().scale, Calibration().ratios) == (1.0, ())


def test_it_rises_at_once_and_falls_when_enough_samples_agree() -> None:
    calibration = Calibration()
    seen = []
    for reported in [800, 800, 800, 1200, 700]:
        assert calibration.learn(1000, reported)
        seen.append(calibration.scale)
    assert seen == [1.0, 1.0, 0.8, 1.2, 1.2]


def test_a_low_outlier_changes_nothing() -> None:
    calibration = Calibration([0.8] * QUORUM)
    calibration.learn(1000, 300)
    assert calibration.scale == 0.8


def test_a_high_outlier_is_forgotten_when_the_window_has_passed() -> None:
    calibration = Calibration([3.9])
    for _ in range(WINDOW - 1):
        calibration.learn(1000, 700)
    assert calibration.scale == 3.9
    calibration.learn(1000, 700)
    assert calibration.scale == 0.7


@pytest.mark.parametrize(
    ("estimated", "reported"),
    [
        (0, 0),
        (0, 5000),
        (LEAST_TOKENS - 1, 5000),
        (5000, LEAST_TOKENS - 1),
        (10_000, 50_000),
        (50_000, 10_000),
    ],
)
def test_small_and_impossible_samples_are_set_aside(estimated: int, reported: int) -> None:
    calibration = Calibration()
    assert not calibration.learn(estimated, reported)
    assert (calibration.scale, calibration.ratios) == (1.0, ())


@given(st.lists(st.tuples(tokens, tokens), max_size=100))
def test_no_accepted_sample_in_the_window_is_under_counted(samples: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    accepted = [sample for sample in samples if calibration.learn(*sample)]
    assert all(
        math.ceil(estimated * calibration.scale) >= 0.98 * reported
        for estimated, reported in accepted[-WINDOW:]
    )
    assert LOWEST <= calibration.scale <= HIGHEST
    assert Calibration(calibration.ratios).scale == calibration.scale


@pytest.mark.parametrize("value", [-1, math.inf, math.nan, True, "12", None])
def test_what_is_no_number_of_tokens_is_refused_and_changes_nothing(value: object) -> None:
    calibration = Calibration()
    with pytest.raises(InputError, match="reported must be a number of tokens") as raised:
        calibration.learn(1000, value)  # type: ignore[arg-type]
    assert raised.value.details == {"field": "reported"}
    with pytest.raises(InputError, match="estimated must be a number of tokens"):
        calibration.learn(value, 1000)  # type: ignore[arg-type]
    assert calibration.ratios == ()


@pytest.mark.parametrize("ratio", [0.1, 5, math.nan])
def test_ratios_that_were_never_learnt_are_refused(ratio: float) -> None:
    with pytest.raises(InputError, match="ratios"):
        Calibration([ratio])


def test_threads_may_share_one() -> None:
    calibration = Calibration()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda reported: calibration.learn(1000, reported), range(500, 900)))
    assert len(calibration.ratios) == WINDOW
    assert calibration.scale == max(calibration.ratios)
