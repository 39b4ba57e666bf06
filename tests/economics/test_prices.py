"""Price sheets as dated, overridable data."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ctxgc.economics import (
    MODEL_PRICES,
    SHEETS,
    ModelPrice,
    PriceSheet,
    model_price,
    price_sheet,
    read_price_table,
    sheet_of,
)
from ctxgc.errors import ConfigError


def test_the_sheets_that_ship_have_the_known_prices_and_penalties() -> None:
    table = {name: (s.read, s.write, round(s.penalty, 9)) for name, s in SHEETS.items()}
    assert table == {
        "anthropic-5m": (0.1, 1.25, 11.5),
        "anthropic-1h": (0.1, 2.0, 19.0),
        "openai": (0.1, 1.0, 9.0),
        "openai-30m": (0.1, 1.25, 11.5),
        "openai-legacy": (0.5, 1.0, 1.0),
        "gemini": (0.25, 1.0, 3.0),
        "deepseek": (0.1, 1.0, 9.0),
        "none": (1.0, 1.0, 0.0),
    }


def test_every_sheet_says_where_it_comes_from_and_when() -> None:
    assert [s.name for s in SHEETS.values() if not (s.as_of and s.source)] == []
    assert [name for name, s in SHEETS.items() if s.name != name] == []


def test_a_sheet_comes_by_name_dictionary_or_itself() -> None:
    own = price_sheet({"read": 0.2, "write": 1.5})
    assert own == PriceSheet(name="custom", read=0.2, write=1.5)
    assert price_sheet(own) is own
    assert price_sheet("none") is SHEETS["none"]


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ("antropic-5m", 'did you mean "anthropic-5m"'),
        ({"read": 0.1}, "write"),
        ({"read": -1, "write": 1}, "read"),
        ({"read": "cheap", "write": 1}, "read"),
        ({"read": 0.1, "write": 1, "wrte": 2}, "wrte"),
        ({"read": float("nan"), "write": 1}, "read"),
        (7, "prices"),
    ],
)
def test_a_wrong_sheet_is_a_typed_error(prices: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        price_sheet(prices)


def test_free_reads_make_every_rewrite_infinitely_dear() -> None:
    assert price_sheet({"read": 0, "write": 1}).penalty == math.inf
    assert price_sheet({"read": 0, "write": 0}).penalty == 0.0


@pytest.mark.parametrize(
    ("model", "sheet"),
    [
        ("claude-sonnet-4-5", "anthropic-5m"), ("us.anthropic.claude-opus-4-1", "anthropic-5m"),
        ("gpt-5-mini", "openai"), ("gpt-5.6-sol", "openai-30m"), ("gpt-6-luna", "openai-30m"),
        ("gpt-4o", "openai-legacy"), ("openai/o3", "openai-legacy"),
        ("gemini-2.5-pro", "gemini"), ("deepseek-chat", "deepseek"), ("turbo3", None), (None, None),
    ],
)  # fmt: skip
def test_a_model_is_billed_by_the_sheet_of_its_provider(
    model: str | None, sheet: str | None
) -> None:
    assert sheet_of(model) == sheet
    assert sheet is None or sheet in SHEETS


# -- Dollars


def dollars(price: ModelPrice | None) -> tuple[float, ...] | None:
    """Return input, output, read and the two writes of a price."""
    if price is None:
        return None
    shown = (price.input, price.output, price.read, price.write, price.write_1h)
    return tuple(round(each, 6) for each in shown)


@pytest.mark.parametrize(
    ("model", "day", "price"),
    [
        ("claude-opus-4-20250514", "", (15.0, 75.0, 1.5, 18.75, 30.0)),
        ("claude-opus-4-1-20250805", "", (15.0, 75.0, 1.5, 18.75, 30.0)),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "", (5.0, 25.0, 0.5, 6.25, 10.0)),
        ("claude-opus-5", "", (5.0, 25.0, 0.5, 6.25, 10.0)),
        ("claude-opus-5-5", "", (4.0, 20.0, 0.2, 5.0, 8.0)),
        ("claude-sonnet-4-20250514", "", (3.0, 15.0, 0.3, 3.75, 6.0)),
        ("claude-sonnet-5-5", "2026-10-06", (2.0, 10.0, 0.2, 2.5, 4.0)),
        ("claude-sonnet-5-5", "2026-10-07", (2.0, 10.0, 0.1, 2.5, 4.0)),
        ("claude-3-5-haiku-latest", "", (0.8, 4.0, 0.08, 1.0, 1.6)),
        ("gpt-5-codex", "", (1.25, 10.0, 0.125, 1.25, 1.25)),
        ("gpt-5.1-codex-mini", "", (0.25, 2.0, 0.025, 0.25, 0.25)),
        ("gpt-5.6-sol", "2026-08-20", (5.0, 30.0, 0.5, 6.25, 6.25)),
        ("gpt-5.6-sol", "2026-08-21", (4.0, 20.0, 0.4, 5.0, 5.0)),
        ("openai/gpt-4o-mini", "", (0.15, 0.6, 0.075, 0.15, 0.15)),
        ("claude-x", "", None), ("", "", None), (None, "", None),
    ],
)  # fmt: skip
def test_a_model_has_the_price_that_its_provider_lists_for_the_day(
    model: str | None, day: str, price: tuple[float, ...] | None
) -> None:
    assert dollars(model_price(model, day)) == price


def test_every_listed_model_names_a_sheet_that_ships() -> None:
    assert {row.sheet for row in MODEL_PRICES} <= set(SHEETS)


def test_kinds_of_tokens_have_their_own_price() -> None:
    price = model_price("claude-opus-4-1")
    assert price is not None
    none = {"uncached": 0, "cache_read": 0, "cache_write": 0, "cache_write_1h": 0, "output": 0}
    million = 1_000_000
    found = {
        "uncached": price.dollars(**{**none, "uncached": million}),
        "cache_read": price.dollars(**{**none, "cache_read": million}),
        "5m": price.dollars(**{**none, "cache_write": million}),
        "1h": price.dollars(**{**none, "cache_write": million, "cache_write_1h": million}),
        "output": price.dollars(**{**none, "output": million}),
    }
    assert found == {"uncached": 15.0, "cache_read": 1.5, "5m": 18.75, "1h": 30.0, "output": 75.0}


def test_a_long_prompt_costs_more_where_the_provider_says_so() -> None:
    price = model_price("claude-sonnet-4-5")
    assert price is not None
    asked = {"uncached": 0, "cache_write": 0, "cache_write_1h": 0, "output": 1_000}
    short, long = (price.dollars(cache_read=n, **asked) for n in (200_000, 200_001))
    assert (round(short, 6), round(long, 6)) == (0.075, 0.142501)


def test_a_table_of_ones_own_comes_before_the_one_that_ships(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    own = {
        "claude-opus-4": {"input": 1, "output": 2},
        "my.model": {"input": 3, "output": 4, "read": 1, "write": 5},
        "claude-haiku-4": {"input": 9, "output": 9, "since": "2026-12-01"},
    }
    path.write_text(json.dumps(own), encoding="utf-8")
    table = read_price_table(path)
    assert dollars(model_price("claude-opus-4-1", table=table)) == (1.0, 2.0, 0.1, 1.25, 2.0)
    assert dollars(model_price("my.model-7b", table=table)) == (3.0, 4.0, 1.0, 5.0, 5.0)
    assert dollars(model_price("myxmodel", table=table)) is None
    assert dollars(model_price("claude-haiku-4-5", "2026-11-30", table)) == (
        1.0,
        5.0,
        0.1,
        1.25,
        2.0,
    )
    assert dollars(model_price("claude-haiku-4-5", "2026-12-01", table)) == (
        9.0,
        9.0,
        0.9,
        11.25,
        18.0,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"m": {"input": 1}}', r"prices.json: m: .*output"),
        ('{"m": {"input": -1, "output": 1}}', r"prices.json: m: input"),
        ('{"m": 3}', r"prices.json: m: "),
        ("[]", "holds no JSON object"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_file_and_model(
    text: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        read_price_table(path)
