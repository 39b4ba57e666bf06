"""Price sheets: what a cached, a written and an output token cost, relative to a plain input token.

The numbers are data with a date. Providers change them: pass your own `PriceSheet` or a dictionary
wherever a name is taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ctxgc.config import in_words, unknown_key
from ctxgc.errors import ConfigError

Price = Annotated[float, Meta(ge=0)]


class PriceSheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in units of one plain input token; `ttl_seconds` None means that nothing expires."""

    name: str
    read: Price
    write: Price
    output: Price = 5.0
    ttl_seconds: Annotated[float, Meta(gt=0)] | None = None
    as_of: str = ""
    source: str = ""

    @property
    def penalty(self) -> float:
        """K = (w-r)/r: how many cached reads of a token one re-write of it costs."""
        extra = max(0.0, self.write - self.read)
        if self.read == 0:
            return math.inf if extra else 0.0
        return extra / self.read


def _sheet(
    name: str, *, read: float, write: float, output: float, ttl: float | None, source: str
) -> PriceSheet:
    return PriceSheet(
        name=name,
        read=read,
        write=write,
        output=output,
        ttl_seconds=ttl,
        as_of="2026-11",
        source=source,
    )


SHEETS: Mapping[str, PriceSheet] = {
    sheet.name: sheet
    for sheet in (
        _sheet(
            "anthropic-5m",
            read=0.1,
            write=1.25,
            output=5.0,
            ttl=300.0,
            source="Anthropic, prompt caching: 5-minute writes at 1.25, reads at 0.1",
        ),
        _sheet(
            "anthropic-1h",
            read=0.1,
            write=2.0,
            output=5.0,
            ttl=3600.0,
            source="Anthropic, prompt caching: 1-hour writes at 2, reads at 0.1",
        ),
        _sheet(
            "openai",
            read=0.1,
            write=1.0,
            output=8.0,
            ttl=300.0,
            source="OpenAI, gpt-5 family before 5.6: reads at 0.1, writes without a premium",
        ),
        _sheet(
            "openai-legacy",
            read=0.5,
            write=1.0,
            output=4.0,
            ttl=300.0,
            source="OpenAI, models before gpt-5: reads at 0.5",
        ),
        _sheet(
            "gemini",
            read=0.25,
            write=1.0,
            output=8.0,
            ttl=300.0,
            source="Google, implicit caching: reads at 0.1 to 0.25, taken at the dearer end",
        ),
        _sheet(
            "deepseek",
            read=0.1,
            write=1.0,
            output=1.5,
            ttl=None,
            source="DeepSeek, context caching on disk: reads at 0.1",
        ),
        _sheet(
            "none",
            read=1.0,
            write=1.0,
            output=5.0,
            ttl=None,
            source="no discount: brokers and local servers, where size is latency",
        ),
    )
}
"""The sheets that ship with ctxgc, by name."""

MODEL_SHEETS: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic-5m"),
    (r"gpt-?5|codex", "openai"),
    (r"gpt-?[34o]|(^|[/:.@\s])o[134](?![0-9a-z])", "openai-legacy"),
    (r"gemini", "gemini"),
    (r"deepseek", "deepseek"),
)
"""Part of a model's name -> its sheet, as of 2026-11; the first that fits."""


def sheet_of(model: str | None) -> str | None:
    """Return the name of the sheet that a model is billed by; None if it is not known."""
    name = (model or "").lower()
    return next((sheet for part, sheet in MODEL_SHEETS if re.search(part, name)), None)


def price_sheet(prices: str | Mapping[str, Any] | PriceSheet) -> PriceSheet:
    """Return the named sheet, the one that a dictionary describes, or the sheet itself.

    Raises:
        ConfigError: the name is unknown, or a price is missing, negative or no number.
    """
    if isinstance(prices, PriceSheet):
        return prices
    if isinstance(prices, str):
        if prices not in SHEETS:
            raise unknown_key(prices, SHEETS, "price sheet")
        return SHEETS[prices]
    try:
        return msgspec.convert({"name": "custom", **prices}, PriceSheet)
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigError(
            f"prices: {_in_words(error)}",
            hint='give at least "read" and "write", as shares of plain input',
        ) from None


def _in_words(error: Exception) -> str:
    key = str(error).rpartition("$.")[2].strip("`") if "$." in str(error) else "the sheet"
    return f"{key} {in_words(str(error))}"
