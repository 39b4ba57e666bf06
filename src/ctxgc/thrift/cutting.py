"""Where to cut: from which message on the history is worth being written anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.thrift.presets import Preset
from ctxgc.thrift.sizes import Sizes

LEAST_REQUESTS = 2


class Offer(Protocol):
    """A result that may leave: its message's place, the tokens it would save, what waiting cost so far.

    `born` is the first request that carried it.
    """

    place: int
    saving: float
    rent: float
    born: int


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """What was paid so far, and what would have been paid without ever pruning, this request included.

    `beside` are the tokens of the system prompt and the tools.
    """

    bill: float
    unpruned_bill: float
    beside: float = 0.0
    is_cold: bool = False


def best_cut(
    offers: Sequence[Offer],
    sizes: Sizes,
    sent: int,
    *,
    books: Books,
    sheet: PriceSheet,
    how: Preset,
    requests: int,
) -> int | None:
    """Return the place from which on to cut, or None when waiting is better.

    Args:
        offers: what may leave, the last of the view first.
        sizes: the tokens of every message of the view.
        sent: how many of them the last request carried.
        books: what was paid so far.
        sheet: the prices.
        how: the constants.
        requests: how many requests there were, this one included.
    """
    worth = sheet.read * min(how.horizon, max(LEAST_REQUESTS, requests))
    extra = 0.0 if books.is_cold else sheet.write - sheet.read
    before, fresh = sizes.before, sizes.between(sent, len(sizes))
    whole = before[sent]
    won = rent = 0.0
    tail: tuple[float, float] | None = None
    best: tuple[float, int] | None = None
    for offer in offers:
        won += offer.saving
        rent += offer.rent
        rewritten = whole - before[offer.place] - won
        if rewritten < 0:
            rewritten = 0.0
        gain = worth * won - extra * rewritten
        if gain <= 0:
            continue
        cost = _cost(books, sheet, before[offer.place], rewritten + fresh)
        if cost > (1 + how.guard) * books.unpruned_bill:
            continue
        if requests - offer.born == 1:
            tail = (gain, rewritten) if tail is None or gain > tail[0] else tail
        elif rent < how.patience * extra * (rewritten - (tail[1] if tail else 0.0)):
            continue
        if best is None or gain > best[0]:
            best = (gain, offer.place)
    return None if best is None else best[1]


def _cost(books: Books, sheet: PriceSheet, cached: float, written: float) -> float:
    """Return what the session will have paid after a request with so much cached and written."""
    kept = cached + books.beside
    read = sheet.write * kept if books.is_cold else sheet.read * kept
    return books.bill + read + sheet.write * written
