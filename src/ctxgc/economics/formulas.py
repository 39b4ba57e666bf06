"""When an edit of the view pays, in units of one plain input token.

    removed        dT  tokens that leave the view, net of tombstones
    rewritten      S   tokens that stay behind the first changed byte
    requests_left  R   requests still to come, the next one included
    sheet          r (read), w (write), o (output)

A provider caches the prefix of a request. While nothing changes, a resident token costs r per
request. An edit breaks the prefix: everything behind it is written again, for w instead of r, once.
"""

from __future__ import annotations

import math

from ctxgc.economics.prices import PriceSheet


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
    """Return the least number of requests after which an edit has won, or None for never."""
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

    `kept` tokens stay behind the edit each time, `garbage` tokens arrive per request. Holding
    garbage costs more the longer one waits, re-writing costs more the oftener one collects.
    """
    return math.inf if garbage <= 0 else math.sqrt(2 * penalty * kept / garbage)


def least_drop(penalty: float, kept: float, garbage: float) -> float:
    """Return how far below its trigger a collection has to land to last a best period: `g*T*`."""
    return 0.0 if garbage <= 0 else garbage * best_period(penalty, kept, garbage)


def long_ttl_share(short: PriceSheet, long: PriceSheet) -> float:
    """Return the share of written tokens, re-written after idle gaps, above which `long` wins."""
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
