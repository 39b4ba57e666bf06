"""The bill of a replay: every request priced with a prompt cache that behaves as documented."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.lab.entries import Entry


class Bill(msgspec.Struct, kw_only=True):
    """Sums over the requests so far; `cost` is in units of one plain input token."""

    cost: float = 0.0
    sent: int = 0
    cached: int = 0
    peak: int = 0


class Till:
    """Prices one request after the other.

    The messages that a request shares with the one before, byte for byte from the beginning, are
    read from the cache; the rest is written. After a pause longer than the life of the cache, where
    the run has times, all is written.
    """

    def __init__(self, sheet: PriceSheet, times: Sequence[float] | None = None) -> None:
        self.bill = Bill()
        self._sheet = sheet
        self._times = times
        self._last: float | None = None

    def charge(self, view: Sequence[Entry], same: int, index: int) -> int:
        """Book the request that message `index` answers; return its size.

        `same` is how many messages it begins with that the one before began with.
        """
        sizes = [entry.tokens for entry in view]
        sent = sum(sizes)
        cached = sum(sizes[:same]) if self._is_warm(index) else 0
        bill = self.bill
        bill.cost += self._sheet.read * cached + self._sheet.write * (sent - cached)
        bill.sent += sent
        bill.cached += cached
        bill.peak = max(bill.peak, sent)
        return sent

    def _is_warm(self, index: int) -> bool:
        if self._times is None:
            return True
        before, self._last = self._last, self._times[index]
        life = self._sheet.ttl_seconds
        return before is None or life is None or self._last - before <= life


def unpruned_bill(
    entries: Sequence[Entry],
    answers: Sequence[int],
    sheet: PriceSheet,
    times: Sequence[float] | None,
) -> Bill:
    """Return what the run costs when each answer is asked for with the whole history before it."""
    till = Till(sheet, times)
    before = 0
    for index in answers:
        till.charge(entries[:index], before, index)
        before = index
    return till.bill
