"""Price sheets as dated, overridable data."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ctxgc.economics import SHEETS, PriceSheet, price_sheet, sheet_of
from ctxgc.errors import ConfigError


def test_the_sheets_that_ship_have_the_known_prices_and_penalties() -> None:
    table = {name: (s.read, s.write, round(s.penalty, 9)) for name, s in SHEETS.items()}
    assert table == {
        "anthropic-5m": (0.1, 1.25, 11.5),
        "anthropic-1h": (0.1, 2.0, 19.0),
        "openai": (0.1, 1.0, 9.0),
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
        ("gpt-5-mini", "openai"), ("gpt-4o", "openai-legacy"), ("openai/o3", "openai-legacy"),
        ("gemini-2.5-pro", "gemini"), ("deepseek-chat", "deepseek"), ("turbo3", None), (None, None),
    ],
)  # fmt: skip
def test_a_model_is_billed_by_the_sheet_of_its_provider(
    model: str | None, sheet: str | None
) -> None:
    assert sheet_of(model) == sheet
    assert sheet is None or sheet in SHEETS
