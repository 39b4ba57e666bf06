"""The formulas, against printed numbers, a brute-force search and a request-by-request bill."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import (
    SHEETS,
    PriceSheet,
    admission_gain,
    best_period,
    break_even,
    expected_gain,
    expected_requests_left,
    fault_adjusted_gain,
    fault_cost,
    highest_fault_rate,
    largest_saving,
    least_drop,
    long_ttl_share,
    most_keepalive_pings,
    requests_to_pay_back,
)

FIVE_MINUTES = SHEETS["anthropic-5m"]
ONE_HOUR = SHEETS["anthropic-1h"]

sheets = st.sampled_from(list(SHEETS.values()))
tokens = st.integers(0, 200_000)
requests = st.integers(1, 200)
chances = st.floats(0, 1)


def bill_of(
    requests_left: int, before: int, after: int, *, prefix: int, sheet: PriceSheet
) -> float:
    """Pay for each request by itself: `prefix` of the first is cached, then everything is."""
    first = sheet.read * prefix + sheet.write * (after - prefix)
    assert before >= after >= prefix
    return first + (requests_left - 1) * sheet.read * after


@given(requests, st.integers(1, 100_000), tokens, tokens, sheets)
def test_break_even_is_the_difference_of_the_two_bills(
    left: int, removed: int, rewritten: int, prefix: int, sheet: PriceSheet
) -> None:
    size = prefix + removed + rewritten
    untouched = bill_of(left, size, size, prefix=size, sheet=sheet)
    edited = bill_of(left, size, prefix + rewritten, prefix=prefix, sheet=sheet)
    assert break_even(left, removed, rewritten, sheet) == pytest.approx(
        untouched - edited, abs=1e-3
    )


@given(requests, st.integers(1, 100_000), tokens, tokens, sheets)
def test_a_cold_edit_gains_what_is_not_written(
    left: int, removed: int, rewritten: int, prefix: int, sheet: PriceSheet
) -> None:
    size = prefix + removed + rewritten
    untouched = bill_of(left, size, size, prefix=0, sheet=sheet)
    edited = bill_of(left, size, size - removed, prefix=0, sheet=sheet)
    gain = expected_gain(0.0, left, removed, rewritten, sheet)
    assert gain == pytest.approx(untouched - edited, abs=1e-3)
    assert gain == admission_gain(left, removed, sheet)
    assert gain > 0


@given(chances, requests, tokens, tokens, sheets)
def test_the_expected_gain_lies_between_warm_and_cold(
    alive: float, left: int, removed: int, rewritten: int, sheet: PriceSheet
) -> None:
    warm = break_even(left, removed, rewritten, sheet)
    cold = admission_gain(left, removed, sheet)
    gain = expected_gain(alive, left, removed, rewritten, sheet)
    assert min(warm, cold) - 1e-6 <= gain <= max(warm, cold) + 1e-6


@pytest.mark.parametrize(("share", "needed"), [(0.1, 2), (3.0, 35)])
def test_the_printed_pay_back_times(share: float, needed: int) -> None:
    assert requests_to_pay_back(1_000, int(1_000 * share), FIVE_MINUTES) == needed


@given(st.integers(1, 100_000), tokens, sheets)
def test_an_edit_has_won_exactly_from_its_pay_back_time_on(
    removed: int, rewritten: int, sheet: PriceSheet
) -> None:
    needed = requests_to_pay_back(removed, rewritten, sheet)
    assert needed is not None
    assert break_even(needed, removed, rewritten, sheet) > 0
    if needed > 1:
        assert break_even(needed - 1, removed, rewritten, sheet) <= 1e-6


def test_an_edit_that_removes_nothing_never_pays() -> None:
    assert requests_to_pay_back(0, 500, FIVE_MINUTES) is None
    assert break_even(50, 0, 100, FIVE_MINUTES, pressure=math.inf) == pytest.approx(-115)


def test_without_a_discount_every_edit_pays_at_once() -> None:
    assert requests_to_pay_back(1, 100_000, SHEETS["none"]) == 1


def test_at_the_hard_limit_any_removal_pays() -> None:
    assert break_even(1, 1, 10**9, FIVE_MINUTES, pressure=math.inf) == math.inf


def test_a_fault_costs_a_write_a_request_and_a_call() -> None:
    cost = fault_cost(1_000, 20_000, 50, FIVE_MINUTES)
    assert cost == pytest.approx(1.25 * 1_000 + 0.1 * 20_000 + 5 * 50)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_the_highest_fault_rate_is_where_the_adjusted_gain_is_gone(
    gain: float, cost: float
) -> None:
    rate = highest_fault_rate(gain, cost)
    adjusted = fault_adjusted_gain(gain, rate, cost)
    if gain <= 0:
        assert rate == 0.0
    elif rate < 1:
        assert adjusted == pytest.approx(0, abs=1e-6 * cost)
    else:
        assert adjusted >= -1e-6 * cost


def test_what_costs_nothing_to_fetch_again_may_always_go() -> None:
    assert highest_fault_rate(5.0, 0.0) == 1.0


@pytest.mark.parametrize(
    ("penalty", "kept", "printed"),
    [
        (11.5, 3.375, 8.8),
        (11.5, 9.0, 14.4),
        (19.0, 3.375, 11.3),
        (19.0, 9.0, 18.5),
        (9.0, 3.375, 7.8),
        (9.0, 9.0, 12.7),
        (1.0, 3.375, 2.6),
        (1.0, 9.0, 4.2),
    ],
)
def test_the_printed_best_periods(penalty: float, kept: float, printed: float) -> None:
    assert round(best_period(penalty, kept * 1_000, 1_000), 1) == printed


def cost_per_request(period: int, penalty: float, kept: float, garbage: float) -> float:
    """Simulate one period: garbage is held (1 per token and request), then `kept` is re-written."""
    held = sum(garbage * step for step in range(1, period))
    return (held + penalty * kept) / period


@given(st.floats(1, 20), st.floats(500, 50_000), st.floats(50, 5_000))
def test_the_cheapest_whole_period_is_next_to_the_best_one(
    penalty: float, kept: float, garbage: float
) -> None:
    best = best_period(penalty, kept, garbage)
    near = {max(1, math.floor(best)), math.ceil(best)}
    tried = range(1, 4 * math.ceil(best) + 4)
    cheapest = min(cost_per_request(t, penalty, kept, garbage) for t in tried)
    assert min(cost_per_request(t, penalty, kept, garbage) for t in near) == pytest.approx(cheapest)


def test_without_garbage_there_is_nothing_to_collect() -> None:
    assert (best_period(11.5, 1_000, 0), least_drop(11.5, 1_000, 0)) == (math.inf, 0.0)


def test_the_drop_has_to_last_a_best_period() -> None:
    assert least_drop(11.5, 9_000, 1_000) == pytest.approx(1_000 * best_period(11.5, 9_000, 1_000))


def test_the_printed_ttl_choice() -> None:
    assert round(100 * long_ttl_share(FIVE_MINUTES, ONE_HOUR), 1) == 39.5
    assert most_keepalive_pings(FIVE_MINUTES) == 11


def test_pings_without_a_discount_or_for_free() -> None:
    assert most_keepalive_pings(SHEETS["none"]) == 0
    assert most_keepalive_pings(PriceSheet(name="free", read=0, write=1)) is None


def test_the_printed_whole_bill_check() -> None:
    assert round(100 * largest_saving(1.0, 0.935, FIVE_MINUTES)) == 54
    assert round(100 * largest_saving(0.4, 0.935, FIVE_MINUTES)) == 21
    assert largest_saving(0.4, 0.0, FIVE_MINUTES) == 0.0
    assert largest_saving(0.4, 1.0, PriceSheet(name="free", read=0, write=1)) == 0.0


@pytest.mark.parametrize(("made", "left"), [(0, 2), (1, 2), (17, 17), (400, 40)])
def test_what_has_lasted_is_expected_to_last_as_long_again(made: int, left: int) -> None:
    assert expected_requests_left(made) == left
