"""Regimes: how large the window is."""

from __future__ import annotations

import pytest

from ctxgc.errors import ConfigError
from ctxgc.lab import Regime, parse_regime
from ctxgc.lab.facts import total_weight
from ctxgc.lab.regimes import COST_LIMIT, head_of
from tests.lab.builders import answer, user

SYSTEM = {"role": "system", "content": "be kind"}
MESSAGES = [SYSTEM, user("begin"), answer("a long enough answer"), user("end of it")]


@pytest.mark.parametrize("text", ["cost", "window:50%", "window:40000"])
def test_a_regime_is_spelled_as_it_is_read(text: str) -> None:
    assert parse_regime(text).name == text


@pytest.mark.parametrize(
    "text", ["", "window", "window:", "window:0%", "window:-3", "cost:5", "w:5"]
)
def test_what_is_no_regime_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="window:50%"):
        parse_regime(text)


def test_the_head_is_the_system_and_the_first_request() -> None:
    assert head_of(MESSAGES) == [0, 1]
    assert head_of([answer("x")]) == []


def test_a_window_is_the_head_and_a_share_of_the_rest() -> None:
    head, rest = total_weight(MESSAGES[:2]), total_weight(MESSAGES[2:])
    assert parse_regime("window:50%").limit(MESSAGES) == head + rest // 2
    assert parse_regime("window:123").limit(MESSAGES) == 123
    assert Regime().limit(MESSAGES) == COST_LIMIT
