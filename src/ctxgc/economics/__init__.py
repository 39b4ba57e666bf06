"""Prompt-cache economics: prices, when an edit pays, and what was saved.

`prices` has the price sheets (relative to one plain input token), the dollars of each model, and finds
either by name. `savings` has the formulas (what an edit costs, after how many requests it has paid for
itself) and `SavingsLedger`, which compares what was paid with what would have been paid without collecting.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.economics.prices import (
        MODEL_PRICES, ModelPrice, PRICES_AS_OF, PriceSheet, SHEETS, kept_for, model_price,
        price_sheet, read_price_table, sheet_of,
    )
    from ctxgc.economics.savings import (
        Savings, SavingsLedger, admission_gain, best_period, break_even, expected_gain,
        expected_requests_left, fault_adjusted_gain, fault_cost, highest_fault_rate, largest_saving,
        least_drop, long_ttl_share, most_keepalive_pings, requests_to_pay_back, shared_prefix,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "prices":
                "MODEL_PRICES ModelPrice PRICES_AS_OF PriceSheet SHEETS kept_for model_price "
                "price_sheet read_price_table sheet_of",
            "savings":
                "Savings SavingsLedger admission_gain best_period break_even expected_gain "
                "expected_requests_left fault_adjusted_gain fault_cost highest_fault_rate "
                "largest_saving least_drop long_ttl_share most_keepalive_pings "
                "requests_to_pay_back shared_prefix",
        },
    )
