"""The savings ledger never says more than was saved."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import SHEETS, Savings, SavingsLedger, shared_prefix
from ctxgc.errors import InputError


def test_three_requests_with_one_collection_add_up() -> None:
    ledger = SavingsLedger("anthropic-5m")
    ledger.record(1_000, 0, 1_000)
    ledger.record(2_000, 1_000, 2_000)
    ledger.record(1_500, 500, 3_000)
    bill = 1.25 * 1_000 + (0.1 * 1_000 + 1.25 * 1_000) + (0.1 * 500 + 1.25 * 1_000)
    other = 1.25 * 1_000 + (0.1 * 1_000 + 1.25 * 1_000) + (0.1 * 2_000 + 1.25 * 1_000)
    assert ledger.savings == Savings(
        requests=3,
        sent_tokens=4_500,
        counterfactual_tokens=6_000,
        bill=pytest.approx(bill),
        counterfactual_bill=pytest.approx(other),
    )
    assert ledger.savings.saved == pytest.approx(other - bill)
    assert ledger.savings.saved_percent == pytest.approx(100 * (other - bill) / other)


def test_a_lapsed_cache_makes_both_bills_write_again() -> None:
    ledger = SavingsLedger("anthropic-5m")
    ledger.record(1_000, 0, 1_000)
    ledger.record(1_000, 0, 2_000, warm=False)
    assert ledger.savings.counterfactual_bill == pytest.approx(1.25 * 3_000)


def test_a_fault_is_charged_to_us_alone() -> None:
    ledger = SavingsLedger("anthropic-5m")
    ledger.fault(100, 2_000, call=10)
    assert ledger.savings == Savings(faults=1, bill=pytest.approx(125 + 200 + 50))
    assert ledger.savings.saved < 0


def test_an_extra_request_has_no_counterfactual() -> None:
    ledger = SavingsLedger("none")
    ledger.record(1_000, 0, 1_000)
    ledger.record(1_200, 1_000, 1_200, extra=True)
    ledger.record(1_300, 1_200, 1_300)
    assert (ledger.savings.bill, ledger.savings.counterfactual_bill) == (3_500.0, 2_300.0)


def test_nobody_is_credited_for_more_than_the_window_holds() -> None:
    ledger = SavingsLedger("none", context_limit=5_000)
    ledger.record(1_000, 0, 90_000)
    assert ledger.savings.saved == 4_000.0


@given(
    st.sampled_from(sorted(SHEETS)),
    st.lists(st.tuples(st.integers(0, 10_000), st.booleans()), max_size=20),
)
def test_without_collections_nothing_is_saved(name: str, steps: list[tuple[int, bool]]) -> None:
    ledger, size = SavingsLedger(name), 0
    for grown, warm in steps:
        ledger.record(size + grown, size if warm else 0, size + grown, warm=warm)
        size += grown
    assert ledger.savings.saved == pytest.approx(0)


def test_a_ledger_survives_its_dictionary_form() -> None:
    ledger = SavingsLedger({"read": 0.2, "write": 1.1}, context_limit=9_000)
    ledger.record(1_000, 0, 1_500)
    plain = json.loads(json.dumps(ledger.to_dict()))
    again = SavingsLedger.from_dict(plain)
    assert again.to_dict() == plain
    assert again.record(10, 0, 2_000) == ledger.record(10, 0, 2_000)


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.record(-1, 0, 0),
        lambda ledger: ledger.record(5, 6, 5),
        lambda ledger: ledger.record(5, 0, -5),
        lambda ledger: ledger.fault(-1, 0),
        lambda _: SavingsLedger.from_dict({}),
        lambda _: SavingsLedger.from_dict({"prices": "none", "context_limit": None, "savings": 3}),
    ],
)
def test_wrong_counts_are_refused_and_nothing_is_booked(call: object) -> None:
    ledger = SavingsLedger("none")
    with pytest.raises(InputError):
        call(ledger)  # type: ignore[operator]
    assert ledger.savings == Savings()


def test_the_shared_prefix_ends_at_the_first_difference() -> None:
    before = [("a", 10), ("b", 20), ("c", 30)]
    assert shared_prefix(before, [("a", 10), ("b", 20), ("x", 1), ("c", 30)]) == 30
    assert shared_prefix(before, [*before, ("d", 5)]) == 60
    assert shared_prefix(before, [("x", 1)]) == shared_prefix([], before) == 0


def test_an_empty_ledger_saves_nothing() -> None:
    assert (Savings().saved, Savings().saved_percent) == (0.0, 0.0)
