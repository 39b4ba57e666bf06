"""A model with a price is all that a session needs: its window, its counter and its prices follow."""

from __future__ import annotations

import pytest

from ctxgc import Session
from ctxgc.economics import MODEL_PRICES, model_price

NAMES = [
    "claude-fable-5-1", "claude-mythos-5", "claude-opus-5-5", "claude-opus-4-5", "claude-opus-4-1-20250805",
    "claude-sonnet-5-5", "claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-3-7-sonnet",
    "claude-haiku-5-5", "claude-haiku-4-5", "claude-3-5-haiku", "claude-3-haiku", "gpt-6.1-sol",
    "gpt-6.1-terra", "gpt-6-astra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6-sol", "gpt-5.6-terra",
    "gpt-5.6-luna", "gpt-5.5", "gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.4", "gpt-5.2", "gpt-5-mini",
    "gpt-5-nano", "gpt-5", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4.1", "gpt-4o-mini", "gpt-4o", "o3",
    "o4-mini", "gemini-2.5-pro", "gemini-2.5-flash", "deepseek-chat",
]  # fmt: skip


@pytest.mark.parametrize("model", NAMES)
def test_the_model_alone_is_enough(model: str) -> None:
    priced = model_price(model)
    assert priced is not None
    with Session(model=model, store="memory:") as session:
        assert session.context_limit >= 100_000
        assert session.inspect().options.prices.name == priced.sheet


def test_every_price_is_tried() -> None:
    tried = {row.model for row in map(model_price, NAMES) if row is not None}
    assert tried == {row.model for row in MODEL_PRICES}
