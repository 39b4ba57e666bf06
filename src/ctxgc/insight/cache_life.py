"""Cold moments: when a provider's cache lets go of a session, and what the request after that costs.

Until then an edit must earn what it re-writes; afterwards all is written anew, so collecting is free. What a
collection would leave is not guessed: a copy of the session in memory makes the request at that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ctxgc.economics import (
    ModelPrice,
    PriceSheet,
    kept_for,
    model_price,
    price_sheet,
    sheet_of,
)
from ctxgc.insight.cost import Spend, prices_in_use, spend_of
from ctxgc.session import DEFAULT_PRICES, Session, copy_in_memory
from ctxgc.stores import consistent_read
from ctxgc.wire.transcripts import plain

_LATER = timedelta(seconds=1)


class ColdMoment(msgspec.Struct, frozen=True, kw_only=True):
    """When the cache of a session lapses, and what its next request then has to write.

    `tokens` are those of the request without a collection, `tokens_after` those that are left by the one
    that is due then; the dollars are None where the price of the model is not known.
    """

    cold_at: datetime
    tokens: int
    tokens_after: int
    dollars: float | None = None
    dollars_after: float | None = None

    def seconds_left(self, now: datetime) -> float:
        """Return for how long the cache stays; 0 if it has lapsed."""
        return max(0.0, (self.cold_at - now).total_seconds())

    def text(self, now: datetime) -> str:
        """Return it in one line: `cold in 3:40; resume 0.91 $, after a collection 0.35 $`."""
        left = round(self.seconds_left(now))
        when = f"cold in {left // 60}:{left % 60:02}" if left else "cold"
        before = _amount(self.dollars, self.tokens)
        return f"{when}; resume {before}, after a collection {_amount(self.dollars_after, self.tokens_after)}"

    def to_dict(self, now: datetime) -> dict[str, Any]:
        """Return it as JSON-ready data, with what is left until then and the line that says it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {**found, "seconds_left": round(self.seconds_left(now)), "text": self.text(now)}


def _amount(dollars: float | None, tokens: int) -> str:
    return f"{tokens:,} tokens" if dollars is None else f"{dollars:.2f} $"


def cold_moment(session: Session) -> ColdMoment | None:
    """Return the cold moment of a session that its store has; None if none is coming."""
    parts = session.inspect()
    sent_at, life = parts.state.sent_at, parts.options.prices.ttl_seconds
    if sent_at is None or life is None:
        return None
    cold_at = sent_at + timedelta(seconds=life)
    tokens, tokens_after = _rehearsed(session, max(cold_at + _LATER, parts.options.clock()))
    price, sheet = model_price(parts.options.model, "", prices_in_use()), parts.options.prices
    return ColdMoment(
        cold_at=cold_at,
        tokens=tokens,
        tokens_after=tokens_after,
        dollars=_dollars(price, tokens, sheet),
        dollars_after=_dollars(price, tokens_after, sheet),
    )


def _rehearsed(session: Session, now: datetime) -> tuple[int, int]:
    """Return the size of a session's request at a time, without and with the collection that is due then."""
    parts, name = session.inspect(), session.session_id
    store = parts.archive.store
    copy = Session(
        session.context_limit, model=parts.options.model, prices=parts.options.prices,
        store=consistent_read(store, name, lambda: copy_in_memory(store, name)), session_id=name,
        config=session.config, counter=parts.accounting.counter,
        recall_call=parts.options.recall_call or "", clock=lambda: now,
    )  # fmt: skip
    with copy:
        before = copy.usage().total_tokens
        copy.messages()
        return before, copy.usage().total_tokens


def _dollars(price: ModelPrice | None, tokens: int, sheet: PriceSheet) -> float | None:
    return None if price is None else round(price.to_write(tokens, sheet), 6)


def request_prices(model: str | None, cache_seconds: float) -> PriceSheet:
    """Return the prices of requests to a model that ask its provider to keep them for so long."""
    return kept_for(price_sheet(sheet_of(model) or DEFAULT_PRICES), cache_seconds)


def answer_spend(usage: Mapping[str, Any], model: str | None) -> Spend:
    """Return what a request cost by the usage in its answer, in the words of any provider.

    Raises:
        ConfigError: the user's price table cannot be read.
    """
    found = plain.usage_of({"usage": usage}, 0)
    return Spend() if found is None else spend_of(found, prices_in_use(), model)
