"""Prompt-cache economics: price sheets, when an edit pays, and what was really saved."""

from ctxgc.economics.formulas import (
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
from ctxgc.economics.ledger import Savings, SavingsLedger, shared_prefix
from ctxgc.economics.prices import SHEETS, PriceSheet, price_sheet

__all__ = [
    "SHEETS",
    "PriceSheet",
    "Savings",
    "SavingsLedger",
    "admission_gain",
    "best_period",
    "break_even",
    "expected_gain",
    "expected_requests_left",
    "fault_adjusted_gain",
    "fault_cost",
    "highest_fault_rate",
    "largest_saving",
    "least_drop",
    "long_ttl_share",
    "most_keepalive_pings",
    "price_sheet",
    "requests_to_pay_back",
    "shared_prefix",
]
