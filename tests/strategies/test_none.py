"""gc_none: the collector that never collects."""

from __future__ import annotations

from ctxgc.config import GCConfig
from ctxgc.strategies import NoneStrategy
from tests.strategies.build import collect, size_of, talk


def test_it_never_asks_for_a_collection() -> None:
    config = GCConfig(max_turns=1, pressure_percent=None)
    assert NoneStrategy().should_collect({"percent_used": 200.0, "turns": 9}, config) == (
        False,
        None,
    )


def test_a_collection_that_is_asked_for_keeps_all_and_reports_what_is_missing() -> None:
    history = talk(4)
    new, result = collect("gc_none", history, target=10)
    assert (new, result.success, result.removal_list) == (history, True, [])
    assert result.shortfall == size_of(history) - 10
