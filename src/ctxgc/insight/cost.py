"""What sessions cost: the usage that the provider reported, at the price of each model and day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

import msgspec

from ctxgc.config import SessionSettings
from ctxgc.economics import MODEL_PRICES, ModelPrice, model_price, read_price_table
from ctxgc.wire.transcripts import Transcript, Usage, latest_usages, open_transcript


class Spend(msgspec.Struct, kw_only=True):
    """Tokens as the provider counted them, and what they cost in dollars.

    Compactions that the provider made count as requests. `unpriced` of the requests are not in the dollars:
    no price is known for their model.
    """

    requests: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def add(self, other: Spend) -> None:
        """Add the tokens and the dollars of another spend."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def total_of(spends: Iterable[Spend]) -> Spend:
    """Return the sum of spends."""
    total = Spend()
    for spend in spends:
        total.add(spend)
    return total


def prices_in_use(path: str | Path | None = None) -> tuple[ModelPrice, ...]:
    """Return the prices of models: those in a file (else in `CTXGC_PRICE_TABLE`) before those that ship.

    Raises:
        ConfigError: the file cannot be read, or a price in it is wrong.
    """
    own = path or SessionSettings.from_env().price_table
    return MODEL_PRICES if own is None else read_price_table(own)


def spend_of(
    usage: Usage, table: Sequence[ModelPrice] = MODEL_PRICES, model: str | None = None
) -> Spend:
    """Return what one request cost; `model` is what it was sent to if its record does not say."""
    name = usage.model or model
    day = "" if usage.written_at is None else usage.written_at.date().isoformat()
    price = model_price(name, day, table)
    return total_of(_one(each, price) for each in (usage, *usage.compactions))


def _one(usage: Usage, price: ModelPrice | None) -> Spend:
    dollars = 0.0 if price is None else price.dollars(
        uncached=usage.uncached, cache_read=usage.cache_read, cache_write=usage.cache_write,
        cache_write_1h=usage.cache_write_1h, output=usage.output,
    )  # fmt: skip
    return Spend(
        requests=1,
        uncached=usage.uncached,
        cache_read=usage.cache_read,
        cache_write_5m=usage.cache_write - usage.cache_write_1h,
        cache_write_1h=usage.cache_write_1h,
        output=usage.output,
        dollars=dollars,
        unpriced=int(price is None),
    )


# -- One session


class SessionCost(msgspec.Struct, kw_only=True):
    """What one session cost: as a whole, its main conversation, its subagents, and by model and day."""

    total: Spend
    main: Spend
    subagents: Spend
    models: dict[str, Spend]
    days: dict[str, Spend]


def session_cost(
    transcript: Transcript | str | Path,
    table: Sequence[ModelPrice] = MODEL_PRICES,
    zone: tzinfo = UTC,
) -> SessionCost:
    """Return what a session cost, the requests of subagents in its file included.

    Days are those of `zone`. A session whose file reports no usage cost nothing that is known: its total
    has no requests.

    Raises:
        TranscriptError: the file cannot be read, or contains no message.
    """
    found = transcript if isinstance(transcript, Transcript) else open_transcript(transcript)
    usages = latest_usages(item for item in found.items() if isinstance(item, Usage))
    cost = SessionCost(total=Spend(), main=Spend(), subagents=Spend(), models={}, days={})
    for usage in usages:
        spend = spend_of(usage, table, found.facts.model)
        model = usage.model or found.facts.model or "unknown model"
        cost.total.add(spend)
        (cost.subagents if usage.is_side else cost.main).add(spend)
        cost.models.setdefault(model, Spend()).add(spend)
        cost.days.setdefault(day_of(usage, zone), Spend()).add(spend)
    return cost


def day_of(usage: Usage, zone: tzinfo) -> str:
    """Return the day of a request, such as `2026-11-18`."""
    at = usage.written_at
    return "unknown day" if at is None else at.astimezone(zone).date().isoformat()
