"""When an edit pays, and SavingsLedger: what was paid, and what would have been paid without collecting.

It never flatters: the counterfactual is capped at the context window and enjoys a cache that always
hits while it is warm; an extra request that only recalls something has no counterfactual; each fault
is charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.economics.prices import PriceSheet, price_sheet
from ctxgc.errors import InputError

# -- When an edit of the view pays, in plain input tokens


def break_even(
    requests_left: int, removed: int, rewritten: int, sheet: PriceSheet, *, pressure: float = 0.0
) -> float:
    """Return the gain of an edit while the cache is warm: `R*(r + pressure)*dT - (w-r)*S`.

    `pressure` is the shadow price of a resident token: 0 while there is room, infinite at the hard
    limit, where collecting is mandatory.
    """
    if removed == 0:
        return -_rewrite_cost(rewritten, sheet)
    saved = requests_left * (sheet.read + pressure) * removed
    return saved - _rewrite_cost(rewritten, sheet)


def requests_to_pay_back(removed: int, rewritten: int, sheet: PriceSheet) -> int | None:
    """Return the least number of requests after which an edit has paid, or None for never."""
    cost = _rewrite_cost(rewritten, sheet)
    saved = sheet.read * removed
    if saved <= 0:
        return None
    return max(1, math.floor(cost / saved * (1 + 1e-12)) + 1)


def expected_gain(
    alive: float, requests_left: int, removed: int, rewritten: int, sheet: PriceSheet
) -> float:
    """Return the gain of an edit when the cache is alive with probability `alive`.

    A cold cache is written anew anyway: then the edit costs nothing and saves a write.
    """
    warm = break_even(requests_left, removed, rewritten, sheet)
    return alive * warm + (1 - alive) * admission_gain(requests_left, removed, sheet)


def admission_gain(requests_left: int, removed: int, sheet: PriceSheet) -> float:
    """Return the gain of never sending tokens at all: `dT*(w + (R-1)*r)`."""
    return removed * (sheet.write + max(0, requests_left - 1) * sheet.read)


def fault_cost(removed: int, context: int, call: int, sheet: PriceSheet) -> float:
    """Return what it costs to need the content again: `w*dT + r*C + o*call`.

    `context` is the size of the extra request that asks for it, `call` the length of that call.
    """
    return sheet.write * removed + sheet.read * context + sheet.output * call


def fault_adjusted_gain(gain: float, needed: float, cost: float) -> float:
    """Return a gain less the fault cost, weighted by the chance `needed` that it is asked for."""
    return gain - needed * cost


def highest_fault_rate(gain: float, cost: float) -> float:
    """Return the chance of being needed again above which an edit loses, between 0 and 1."""
    if gain <= 0:
        return 0.0
    return min(1.0, gain / cost) if cost > 0 else 1.0


def best_period(penalty: float, kept: float, garbage: float) -> float:
    """Return the number of requests between collections that costs least: `sqrt(2*K*k/g)`.

    `kept` tokens follow the edit each time, `garbage` tokens arrive per request. Holding
    garbage costs more the longer one waits, re-writing costs more the oftener one collects.
    """
    return math.inf if garbage <= 0 else math.sqrt(2 * penalty * kept / garbage)


def least_drop(penalty: float, kept: float, garbage: float) -> float:
    """Return how far below its trigger a collection has to land to last a best period: `g*T*`."""
    return 0.0 if garbage <= 0 else garbage * best_period(penalty, kept, garbage)


def long_ttl_share(short: PriceSheet, long: PriceSheet) -> float:
    """Return the share of written tokens, re-written after idle gaps, above which `long` is cheaper."""
    return (long.write - short.write) / (long.write - long.read)


def most_keepalive_pings(sheet: PriceSheet) -> int | None:
    """Return how many reads that only keep the cache alive are cheaper than one re-write.

    None means any number: reading costs nothing.
    """
    return None if math.isinf(sheet.penalty) else max(0, math.ceil(sheet.penalty) - 1)


def largest_saving(cut: float, cached: float, sheet: PriceSheet) -> float:
    """Return the most that cutting a share `cut` of the tokens can take off the input bill.

    `cached` is the share of tokens that are cache reads. Writes are taken as unchanged.
    """
    reads = sheet.read * cached
    bill = reads + sheet.write * (1 - cached)
    return cut * reads / bill if bill else 0.0


def expected_requests_left(made: int, cap: int = 40) -> int:
    """Return a guess at R: what has lasted `made` requests lasts about as many more."""
    return min(cap, max(2, made))


def _rewrite_cost(rewritten: int, sheet: PriceSheet) -> float:
    return max(0.0, sheet.write - sheet.read) * rewritten


# -- The ledger of what was paid and saved


class Savings(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over all requests; bills are in units of one plain input token."""

    requests: int = 0
    faults: int = 0
    sent_tokens: int = 0
    counterfactual_tokens: int = 0
    bill: float = 0.0
    counterfactual_bill: float = 0.0

    @property
    def saved(self) -> float:
        """The difference of the bills; negative when collecting cost more than it saved."""
        return self.counterfactual_bill - self.bill

    @property
    def saved_percent(self) -> float:
        """The same as a share of the counterfactual bill."""
        if self.counterfactual_bill == 0:
            return 0.0
        return 100.0 * self.saved / self.counterfactual_bill


class SavingsLedger:
    """Books every request. `prices` is anything that `price_sheet` takes."""

    def __init__(
        self, prices: str | Mapping[str, Any] | PriceSheet, context_limit: int | None = None
    ) -> None:
        self.sheet = price_sheet(prices)
        self.savings = Savings()
        self._limit = context_limit
        self._unpruned_before = 0

    def record(
        self, sent: int, cached: int, unpruned: int, *, warm: bool = True, extra: bool = False
    ) -> Savings:
        """Book a request of `sent` tokens, the first `cached` of which the provider had cached.

        `unpruned` is the size of the same request had nothing been collected. `warm` is False when
        the cache had lapsed; `extra` marks a request that only collecting made necessary.

        Raises:
            InputError: a count is negative, or more is cached than sent; nothing was booked.
        """
        _check(sent=sent, cached=cached, unpruned=unpruned)
        if cached > sent:
            raise InputError(f"cached ({cached}) is above sent ({sent})", field="cached")
        imagined = 0 if extra else self._cap(unpruned)
        hit = min(imagined, self._unpruned_before) if warm else 0
        self._unpruned_before = self._unpruned_before if extra else imagined
        return self._book(
            requests=1,
            sent_tokens=sent,
            counterfactual_tokens=imagined,
            bill=self._input_bill(sent, cached),
            counterfactual_bill=self._input_bill(imagined, hit),
        )

    def unpruned_bill(self, unpruned: int, *, warm: bool = True) -> float:
        """Return the bill without collecting once a request of `unpruned` tokens is booked."""
        imagined = self._cap(unpruned)
        hit = min(imagined, self._unpruned_before) if warm else 0
        return self.savings.counterfactual_bill + self._input_bill(imagined, hit)

    def fault(self, recalled: int, context: int, call: int = 0) -> Savings:
        """Charge the need of `recalled` tokens that had left a view of `context` tokens.

        Raises:
            InputError: a count is negative; nothing was booked.
        """
        _check(recalled=recalled, context=context, call=call)
        return self._book(faults=1, bill=fault_cost(recalled, context, call, self.sheet))

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON-ready data, its sums and what they come to included."""
        return {
            "prices": msgspec.to_builtins(self.sheet),
            "context_limit": self._limit,
            "unpruned_before": self._unpruned_before,
            "savings": msgspec.to_builtins(self.savings),
            "saved": self.savings.saved,
            "saved_percent": self.savings.saved_percent,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavingsLedger:
        """Return the ledger that `to_dict` described.

        Raises:
            InputError: a field is missing or wrong.
        """
        try:
            ledger = cls(data["prices"], data["context_limit"])
            ledger.savings = msgspec.convert(data["savings"], Savings)
            ledger._unpruned_before = msgspec.convert(data["unpruned_before"], int)
        except (KeyError, msgspec.ValidationError) as error:
            raise InputError(f"savings ledger: {error}", hint="pass what to_dict() gave") from None
        return ledger

    def sums(self) -> dict[str, Any]:
        """Return what was booked, without prices and window, as JSON-ready data."""
        booked = msgspec.to_builtins(self.savings)
        return {"unpruned_before": self._unpruned_before, "savings": booked}

    def restate(self, sums: Mapping[str, Any]) -> None:
        """Go on from what was booked before, as `sums` gave it; empty when nothing was."""
        self.savings = msgspec.convert(sums.get("savings", {}), Savings)
        self._unpruned_before = sums.get("unpruned_before", 0)

    def _cap(self, tokens: int) -> int:
        return tokens if self._limit is None else min(tokens, self._limit)

    def _input_bill(self, sent: int, cached: int) -> float:
        return self.sheet.read * cached + self.sheet.write * (sent - cached)

    def _book(self, **amounts: float) -> Savings:
        sums = msgspec.structs.asdict(self.savings)
        for key, amount in amounts.items():
            sums[key] += amount
        self.savings = Savings(**sums)
        return self.savings


def shared_prefix(before: Sequence[tuple[str, int]], now: Sequence[tuple[str, int]]) -> int:
    """Return the tokens of the messages that both requests begin with.

    Each message is a (digest, tokens) pair: equal digests mean equal bytes.
    """
    tokens = 0
    for (old, _), (new, size) in zip(before, now, strict=False):
        if old != new:
            break
        tokens += size
    return tokens


def _check(**counts: int) -> None:
    for field, value in counts.items():
        if value < 0:
            raise InputError(f"{field} is {value}", hint="pass a count from 0 up", field=field)
