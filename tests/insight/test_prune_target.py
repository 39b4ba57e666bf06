"""Targets: tokens, shares of the window, presets."""

from __future__ import annotations

import pytest

from ctxgc.errors import InputError
from ctxgc.insight import PruneTarget


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("80k", 80_000),
        ("120000", 120_000),
        ("120_000", 120_000),
        ("1.5M", 1_500_000),
        ("50%", 100_000),
    ],
)
def test_a_text_means_tokens(text: str, tokens: int) -> None:
    assert PruneTarget.parse(text).resolve(present=10, context_limit=200_000) == tokens


def test_a_preset_is_a_share_of_what_is_there() -> None:
    wanted = {"gentle": 75, "balanced": 50, "tight": 25}
    assert {name: PruneTarget.preset(name).resolve(100, 7) for name in wanted} == wanted


@pytest.mark.parametrize("text", ["", "abc", "-5", "0%", "101%", "5 kg", "%"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="the target cannot be"):
        PruneTarget.parse(text)
    with pytest.raises(InputError, match="there is no preset"):
        PruneTarget.preset("harsh")
