"""The bill of a session: what was paid, what sending everything costs, and what collections make of it.

All three lines are about the same requests of the main conversation, and hold the same kinds of tokens.
"""

from __future__ import annotations

import msgspec

from ctxgc.drawing import count, dollars_text
from ctxgc.economics import MODEL_PRICES, PriceSheet
from ctxgc.insight.cost import Spend, prices_in_use, spend_of, total_of
from ctxgc.insight.measurement import Measurement
from ctxgc.insight.replay import BillReplay, SessionRequest
from ctxgc.wire.transcripts import Usage

MOST_REPLAYED = 1_200
"""Messages of one window that are replayed; real windows hold far fewer."""
_LEAST_ROOM = 1_000


class BillLine(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens by kind, and what they cost in the unit of the bill."""

    spend: Spend
    cost: float


class Bill(msgspec.Struct, kw_only=True):
    """What a session cost: as reported, and replayed without and with collections.

    `unit` is `dollars`, or `input tokens` where a price sheet was named or a model has no listed price.
    `prices` is the sheet of the provider's cache. `paid` and `subagents` are None without reported usage.
    """

    unit: str
    prices: str
    paid: BillLine | None
    without: BillLine
    with_: BillLine = msgspec.field(name="with")
    subagents: BillLine | None
    collections: int
    windows: int
    saved_percent: float
    stopped: str = ""


def bill_cost(bill: Bill, cost: float) -> str:
    """Return an amount in the unit of a bill."""
    return dollars_text(cost) if bill.unit == "dollars" else f"{cost:,.0f}"


def bill_sentence(bill: Bill) -> str:
    """Return what collections save, in words."""
    verdict = "saved" if bill.saved_percent >= 0 else "lost"
    by = f"by {count(bill.collections, 'collection')}" if bill.collections else "by marking copies"
    return f"{abs(bill.saved_percent):.1f}% {verdict} {by}"


def make_bill(measured: Measurement) -> Bill:
    """Return the bill of a session."""
    table = MODEL_PRICES if measured.sheet_is_named else prices_in_use()
    model = measured.transcript.facts.model
    replay = _replayed(measured)
    covered = [r.usage for r in _covered(measured) if r.usage is not None]
    said = total_of(spend_of(_output_only(usage), table, model) for usage in covered)
    said.requests = said.unpriced = 0
    side = [spend_of(usage, table, model) for usage in measured.passed.side_usages]
    spends = {
        "paid": total_of(spend_of(usage, table, model) for usage in covered),
        "without": total_of((replay.without, said)),
        "with": total_of((replay.with_, said)),
        "subagents": total_of(side),
    }
    in_dollars = not measured.sheet_is_named and not any(s.unpriced for s in spends.values())
    lines = {
        name: BillLine(spend=s, cost=_cost(s, None if in_dollars else measured.sheet))
        for name, s in spends.items()
    }
    without, with_ = lines["without"].cost, lines["with"].cost
    return Bill(
        unit="dollars" if in_dollars else "input tokens",
        prices=measured.sheet.name,
        paid=lines["paid"] if covered else None,
        without=lines["without"],
        with_=lines["with"],
        subagents=lines["subagents"] if side else None,
        collections=replay.collections,
        windows=replay.windows,
        saved_percent=round(100.0 * (without - with_) / without, 1) if without else 0.0,
        stopped=replay.stopped,
    )


def _replayed(measured: Measurement) -> BillReplay:
    """Send the windows again, in our tokens, and book them in the provider's."""
    scale = measured.scale or 1.0
    replay = BillReplay(
        measured.counter,
        measured.sheet,
        limit=max(_LEAST_ROOM, int((measured.limit - measured.beside) / scale)),
        beside=int(measured.beside / scale),
        scale=scale,
        model=measured.transcript.facts.model,
        table=MODEL_PRICES if measured.sheet_is_named else prices_in_use(),
    )
    total, played = sum(map(len, measured.windows)), 0
    for view in measured.windows:
        measured.progress("replaying", played, total)
        replay.window(view[-MOST_REPLAYED:])
        played += len(view)
    return replay


def _covered(measured: Measurement) -> list[SessionRequest]:
    """Return the requests that are replayed: those of its windows, from their first messages on."""
    first = measured.passed.window.number - len(measured.windows) + 1
    begins = {
        first + n: view[-MOST_REPLAYED:][0].lines[0]
        for n, view in enumerate(measured.windows)
        if view
    }
    return [
        request
        for request in measured.passed.requests
        if request.window in begins and request.line >= begins[request.window]
    ]


def _output_only(usage: Usage) -> Usage:
    return msgspec.structs.replace(
        usage, uncached=0, cache_read=0, cache_write=0, cache_write_1h=0, compactions=()
    )


def _cost(spend: Spend, sheet: PriceSheet | None) -> float:
    """Return what tokens cost: in dollars, or by a sheet in units of one uncached input token."""
    if sheet is None:
        return round(spend.dollars, 6)
    written = spend.cache_write_5m + spend.cache_write_1h
    parts = (
        spend.uncached, sheet.read * spend.cache_read, sheet.write * written,
        sheet.output * spend.output,
    )  # fmt: skip
    return float(round(sum(parts)))
