"""Prices: sheets relative to a plain input token, which decisions are weighed with, and dollars by model.

The numbers are data with a date. Providers change them: pass your own `PriceSheet` or a dictionary
wherever a name is taken, and put `read_price_table` before the models that ship.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ctxgc.config import in_words, located, read_object, unknown_key
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
            "openai-30m",
            read=0.1,
            write=1.25,
            output=5.0,
            ttl=1800.0,
            source="OpenAI from gpt-5.6 on: 30-minute writes at 1.25, reads at 0.1",
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


# -- Dollars


_LONG_LIVED = {"anthropic-5m": "anthropic-1h"}
"""The sheet of a provider -> the one by which what it keeps for an hour is written."""


def kept_for(sheet: PriceSheet, seconds: float) -> PriceSheet:
    """Return the sheet by which a provider writes what it is asked to keep for so long.

    `sheet` is its usual one. Where it lists no price for that life, tokens cost what they usually cost.
    """
    long = SHEETS.get(_LONG_LIVED.get(sheet.name, ""))
    if sheet.ttl_seconds in (None, seconds):
        return sheet
    if long is not None and long.ttl_seconds == seconds:
        return long
    return msgspec.structs.replace(sheet, ttl_seconds=seconds)


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars per million tokens of one model, from the day `since` on.

    `model` is how its name starts, as a regular expression; the name may follow a provider
    (`openai/`, `us.anthropic.`). A request with more than `long_above` prompt tokens costs `long_input`
    times as much for its prompt and `long_output` times for its output.
    """

    model: str
    sheet: str
    input: float
    output: float
    read: float
    write: float
    write_1h: float
    since: str = ""
    long_above: int | None = None
    long_input: float = 1.0
    long_output: float = 1.0

    def fits(self, model: str) -> bool:
        """Return whether this is the price of the model with this name, in lower case."""
        return re.search(rf"(?:^|[/:.@\s])(?:{self.model})", model) is not None

    def dollars(
        self, *, uncached: int, cache_read: int, cache_write: int, cache_write_1h: int, output: int
    ) -> float:
        """Return what one request costs; `cache_write` holds those that are kept for an hour too."""
        prompt = (
            self.input * uncached
            + self.read * cache_read
            + self.write * (cache_write - cache_write_1h)
            + self.write_1h * cache_write_1h
        )
        is_long = (
            self.long_above is not None and uncached + cache_read + cache_write > self.long_above
        )
        said = self.output * output
        total = prompt * self.long_input + said * self.long_output if is_long else prompt + said
        return total / 1_000_000

    def to_write(self, tokens: int, sheet: PriceSheet) -> float:
        """Return the dollars of a prompt that the provider's cache has nothing of, written by a sheet."""
        kept_long = tokens if sheet.name in _LONG_LIVED.values() else 0
        return self.dollars(
            uncached=0, cache_read=0, cache_write=tokens, cache_write_1h=kept_long, output=0
        )


def _model(
    model: str,
    sheet: str,
    plain: float,
    output: float,
    *,
    read: float | None = None,
    since: str = "",
    long: tuple[int, float, float] | None = None,
) -> ModelPrice:
    """Return a row; what it does not say follows from the sheet."""
    short = SHEETS[sheet]
    above, times_input, times_output = long or (None, 1.0, 1.0)
    return ModelPrice(
        model=model,
        sheet=sheet,
        input=plain,
        output=output,
        read=short.read * plain if read is None else read,
        write=short.write * plain,
        write_1h=SHEETS[_LONG_LIVED.get(sheet, sheet)].write * plain,
        since=since,
        long_above=above,
        long_input=times_input,
        long_output=times_output,
    )


PRICES_AS_OF = "2026-11-18"
_OVER_200K = (200_000, 2.0, 1.5)
_OVER_272K = (272_000, 2.0, 1.5)

MODEL_PRICES: tuple[ModelPrice, ...] = (
    _model(r"claude-(fable|mythos)-5[-.]1", "anthropic-5m", 10.0, 50.0, read=0.25),
    _model(r"claude-(fable|mythos)", "anthropic-5m", 10.0, 50.0),
    _model(r"claude-opus-5[-.]5", "anthropic-5m", 4.0, 20.0, read=0.2),
    _model(r"claude-opus-(4[-.][5-9]|5)(?!\d)", "anthropic-5m", 5.0, 25.0),
    _model(r"claude-(opus-4|3-opus)", "anthropic-5m", 15.0, 75.0),
    _model(r"claude-sonnet-5[-.]5", "anthropic-5m", 2.0, 10.0, read=0.1, since="2026-10-07"),
    _model(r"claude-sonnet-5", "anthropic-5m", 2.0, 10.0),
    _model(r"claude-sonnet-4[-.][6-9](?!\d)", "anthropic-5m", 3.0, 15.0),
    _model(r"claude-sonnet-4", "anthropic-5m", 3.0, 15.0, long=_OVER_200K),
    _model(r"claude-3[-.\d]*-sonnet", "anthropic-5m", 3.0, 15.0),
    _model(r"claude-haiku-5[-.]5", "anthropic-5m", 0.1, 0.5, long=(100_000, 5.0, 5.0)),
    _model(r"claude-haiku-[45]", "anthropic-5m", 1.0, 5.0),
    _model(r"claude-3[-.]5-haiku", "anthropic-5m", 0.8, 4.0),
    _model(r"claude-3-haiku", "anthropic-5m", 0.25, 1.25, read=0.03),
    _model(r"gpt-?6\.1-sol", "openai-30m", 2.0, 10.0, read=0.1, long=_OVER_272K),
    _model(r"gpt-?6\.1-terra", "openai-30m", 1.0, 5.0, read=0.05, long=_OVER_272K),
    _model(r"gpt-?6-astra", "openai-30m", 10.0, 50.0, long=_OVER_272K),
    _model(r"gpt-?6-sol", "openai-30m", 2.0, 10.0, long=_OVER_272K),
    _model(r"gpt-?6-luna", "openai-30m", 0.1, 0.5, long=_OVER_272K),
    _model(r"gpt-?5\.6-sol", "openai-30m", 4.0, 20.0, since="2026-08-21", long=_OVER_272K),
    _model(r"gpt-?5\.6-sol", "openai-30m", 5.0, 30.0, long=_OVER_272K),
    _model(r"gpt-?5\.6-terra", "openai-30m", 2.0, 12.0, long=_OVER_272K),
    _model(r"gpt-?5\.6-luna", "openai-30m", 0.2, 1.2, long=_OVER_272K),
    _model(r"gpt-?5\.5", "openai", 5.0, 30.0),
    _model(r"gpt-?5\.4-mini", "openai", 0.75, 4.5),
    _model(r"gpt-?5\.4-nano", "openai", 0.2, 1.25),
    _model(r"gpt-?5\.4", "openai", 2.5, 15.0),
    _model(r"gpt-?5\.[23]", "openai", 1.75, 14.0),
    _model(r"gpt-?5(\.1)?[a-z-]*-mini", "openai", 0.25, 2.0),
    _model(r"gpt-?5-nano", "openai", 0.05, 0.4),
    _model(r"gpt-?5(\.1)?(?![.\d])", "openai", 1.25, 10.0),
    _model(r"gpt-?4\.1-mini", "openai-legacy", 0.4, 1.6, read=0.1),
    _model(r"gpt-?4\.1-nano", "openai-legacy", 0.1, 0.4, read=0.025),
    _model(r"gpt-?4\.1", "openai-legacy", 2.0, 8.0, read=0.5),
    _model(r"gpt-?4o-mini", "openai-legacy", 0.15, 0.6),
    _model(r"gpt-?4o", "openai-legacy", 2.5, 10.0),
    _model(r"o3(?![\da-z-])", "openai-legacy", 2.0, 8.0, read=0.5),
    _model(r"o4-mini", "openai-legacy", 1.1, 4.4, read=0.275),
    _model(r"gemini-2\.5-pro", "gemini", 1.25, 10.0, read=0.125, long=(200_000, 2.0, 1.5)),
    _model(r"gemini-2\.5-flash(?!-lite)", "gemini", 0.3, 2.5, read=0.03),
    _model(r"deepseek-(chat|reasoner)", "deepseek", 0.28, 0.42),
)
"""What the providers list, in dollars per million tokens, as of `PRICES_AS_OF`.

The first row counts whose model fits and whose day has come. A price that ended is kept below the one that
replaced it; `claude-sonnet-5` also gives that of 5.5 before its day.
"""

MODEL_SHEETS: tuple[tuple[str, str], ...] = (
    (r"claude", "anthropic-5m"),
    (r"gpt-?5\.[6-9]|gpt-?[6-9]", "openai-30m"),
    (r"gpt-?5|codex", "openai"),
    (r"gpt-?[34o]|(^|[/:.@\s])o[134](?![0-9a-z])", "openai-legacy"),
    (r"gemini", "gemini"),
    (r"deepseek", "deepseek"),
)
"""Part of a model's name -> the sheet of its provider, listed above or not; the first that fits."""


def sheet_of(model: str | None) -> str | None:
    """Return the name of the sheet that a model is billed by; None if it is not known."""
    name = (model or "").lower()
    return next((sheet for part, sheet in MODEL_SHEETS if re.search(part, name)), None)


def model_price(
    model: str | None, day: str = "", table: Sequence[ModelPrice] = MODEL_PRICES
) -> ModelPrice | None:
    """Return the price of a model on a day (`2026-11-18`; by default the newest); None if not listed."""
    name = (model or "").strip().lower()
    fitting = [row for row in table if name and row.fits(name)]
    return next((row for row in fitting if not day or row.since <= day), None)


class _TableRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    input: Price
    output: Price
    read: Price | None = None
    write: Price | None = None
    write_1h: Price | None = None
    since: str = ""


def read_price_table(path: str | Path) -> tuple[ModelPrice, ...]:
    """Return the prices in a JSON file, before those that ship.

    The file maps the beginning of a model's name to `input` and `output` in dollars per million tokens;
    `read`, `write` and `write_1h` follow from the provider's sheet where it does not give them, and
    `since` is the day (`2026-11-18`) from which a row counts.

    Raises:
        ConfigError: the file cannot be read, or a price is missing or not a number from 0 up.
    """
    rows = [_own_row(name, said, str(path)) for name, said in read_object(path).items()]
    return (*rows, *MODEL_PRICES)


def _own_row(name: str, said: object, origin: str) -> ModelPrice:
    try:
        row = msgspec.convert(said, _TableRow)
    except msgspec.ValidationError as error:
        wrong = ConfigError(
            f"{name}: {_in_words(error)}", hint='give "input" and "output" in dollars per million'
        )
        raise located(wrong, origin) from None
    base = _model(
        re.escape(name.lower()),
        sheet_of(name) or "none",
        row.input,
        row.output,
        read=row.read,
        since=row.since,
    )
    given = {"write": row.write, "write_1h": row.write_1h or row.write}
    changed = {key: value for key, value in given.items() if value is not None}
    return msgspec.structs.replace(base, **changed)
