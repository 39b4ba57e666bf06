"""Stubs: what stays of a tool result, level by level."""

from __future__ import annotations

from ctxgc.config import GCConfig
from ctxgc.core.tombstone import is_tombstone
from tests.strategies.build import collect, size_of
from tests.strategies.test_mark_sweep import output_of, with_results

NARROW = GCConfig(recent_messages=2, recent_user_messages=1, recent_files=0)
NAMES = "\n".join(f"src/pool_{n}.py:{n} lease_counter_{n} = {n}{n}{n}{n}" for n in range(60))


def test_a_tombstone_says_what_it_was_how_large_and_which_names_went() -> None:
    history = with_results(("make lint", NAMES), ("make docs", "done " * 60))
    new, _ = collect("gc_mark_sweep", history, target=size_of(history) - 300, config=NARROW)
    text = output_of(new, "m2")
    assert is_tombstone(text)
    assert "output of make lint moved out" in text
    assert "Names: " in text
    assert size_of([m for m in new if m.message_id == "m2"]) < size_of(history[2:3]) * 0.7


def test_names_go_before_messages_do() -> None:
    history = with_results(
        *[(f"make part{n}", NAMES.replace("pool", f"pool{n}")) for n in range(4)]
    )
    little, _ = collect("gc_mark_sweep", history, target=size_of(history) - 1_000, config=NARROW)
    much, result = collect("gc_mark_sweep", history, target=size_of(history) // 5, config=NARROW)
    assert len(much) == len(history)
    assert size_of(much) < size_of(little)
    assert result.shortfall == 0


def test_a_small_result_is_not_worth_a_tombstone() -> None:
    history = with_results(("ls", "a b c"), ("make", "row " * 300))
    new, _ = collect("gc_mark_sweep", history, target=size_of(history) - 200, config=NARROW)
    assert output_of(new, "m2") == "a b c"
