"""Removal lists in the language of the budget: S2's own loop applies them, whatever its children are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector import GCRemovalItem
from ctxgc.collector.booking import Booking
from ctxgc.collector.host import turn_ids
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.strategies import load_gc_plugin
from tests.requirements import requirement
from tests.strategies.build import collect, ids, requests, size_of, talk

CONVERSATION = InstructionSource.CONVERSATION
TURNS = ("gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget")


def apply_removal_list(budget: InstructionBudget, removal_list: list[GCRemovalItem]) -> None:
    """Apply a list as the session of S2 does."""
    for item in removal_list:
        if item.child_key:
            budget.remove_child(item.source, item.child_key)
        else:
            entry = budget.get_entry(item.source)
            if entry:
                entry.tokens = 0
                entry.children.clear()


def by_turns(
    history: list[Message], limit: int, more: Callable[[list[str]], dict[str, Any]], size: int = 0
) -> InstructionBudget:
    """Return a budget of one child for each turn; `more` says what its entry has besides."""
    budget = InstructionBudget(limit)
    sizes = {message.message_id: size_of([message]) for message in history}
    for number, names in enumerate(turn_ids(history)):
        budget.add_child(
            CONVERSATION,
            f"turn_{number}",
            size or sum(sizes[name] for name in names),
            GCPolicy.PARTIAL,
            **more(names),
        )
    return budget


NAMED: list[Callable[[list[str]], dict[str, Any]]] = [
    lambda names: {"message_ids": names},
    lambda names: {"metadata": {"message_ids": names}},
    lambda _: {},
]


@requirement("S2.session.removes-child", "S2.removal.turn-keys")
@pytest.mark.parametrize("more", NAMED, ids=["by id", "by metadata", "by number"])
@pytest.mark.parametrize("plugin", TURNS)
def test_turns_leave_whole_and_the_loop_of_the_seed_books_it(plugin: str, more: Any) -> None:
    history = talk(12, tools=1)
    budget = by_turns(history, size_of(history), more)
    options = {} if plugin in ("gc_truncate", "gc_budget") else {"summarizer": lambda _: "Brief."}
    target = size_of(history) // 2
    config = GCConfig(preserve_recent_turns=2, summarize_middle_turns=3)
    new, result = collect(
        plugin, history, target=target, budget=budget, options=options, config=config
    )
    gone = [message for message in history if message not in new]
    left = [names for names in turn_ids(history) if not set(names) & set(ids(new))]
    assert [name for names in left for name in names] == ids(gone)
    assert [item.message_ids for item in result.removal_list] == [tuple(names) for names in left]
    numbers = [turn_ids(history).index(names) for names in left]
    assert [item.child_key for item in result.removal_list] == [f"turn_{n}" for n in numbers]
    assert 0 not in numbers
    apply_removal_list(budget, result.removal_list)
    assert budget.total_tokens() + result.details.get("summary_tokens", 0) == size_of(new)
    assert result.tokens_after == size_of(new) <= target


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_budget"])
@pytest.mark.parametrize("more", NAMED, ids=["by id", "by metadata", "by number"])
def test_the_loop_works_again_after_further_turns_and_notices(plugin: str, more: Any) -> None:
    history = talk(30)
    budget = InstructionBudget(1_200)
    strategy = load_gc_plugin(plugin, {"preserve_recent_turns": 2})
    now: list[Message] = []
    for number, names in enumerate(turn_ids(history)):
        messages = [message for message in history if message.message_id in names]
        now += messages
        budget.add_child(
            CONVERSATION, f"turn_{number}", size_of(messages), GCPolicy.PARTIAL, **more(names)
        )
        usage = {"percent_used": budget.utilization(), "context_limit": 1_200}
        due, reason = strategy.should_collect(usage, GCConfig())
        if due and reason is not None:
            now, result = strategy.collect(now, usage, GCConfig(), reason, budget=budget)
            apply_removal_list(budget, result.removal_list)
            assert result.removal_list
            assert budget.total_tokens() == size_of([m for m in now if m.origin != "gc_notice"])
    assert requests(now)[:1] == [0]
    assert requests(now)[-1] == 29
    assert len(requests(now)) < 12


def test_a_turn_counts_what_the_budget_says_not_what_it_would_count_itself() -> None:
    history = talk(10, size=2)
    budget = by_turns(history, 1_000, NAMED[0], size=100)
    new, result = collect(
        "gc_budget",
        history,
        target=600,
        limit=1_000,
        budget=budget,
        config=GCConfig(preserve_recent_turns=1),
    )
    assert requests(new) == [0, 6, 7, 8, 9]
    assert [(item.child_key, item.tokens_freed) for item in result.removal_list] == [
        (f"turn_{number}", 100) for number in range(1, 6)
    ]
    assert (result.tokens_before, result.tokens_after) == (1_000, 500)


def test_a_budget_alone_is_collected_by_the_phases_of_the_seed() -> None:
    budget = InstructionBudget(1_000)
    budget.add_child(InstructionSource.SYSTEM, "prompt", 100, GCPolicy.LOCKED)
    budget.add_child(InstructionSource.ENRICHMENT, "docs", 50, GCPolicy.EPHEMERAL)
    for number in range(8):
        budget.add_child(CONVERSATION, f"turn_{number}", 100, GCPolicy.PARTIAL)
    budget.add_child(CONVERSATION, "gc_summary_1", 40, GCPolicy.PRESERVABLE)
    config = GCConfig(preserve_recent_turns=3, pinned_turn_indices=[1])
    _, result = collect("gc_budget", [], target=600, limit=1_000, budget=budget, config=config)
    assert [(item.child_key, item.reason) for item in result.removal_list] == [
        (None, "enrichment_bulk_clear"),
        ("turn_0", "partial_turn"),
        ("turn_2", "partial_turn"),
        ("turn_3", "partial_turn"),
        ("turn_4", "partial_turn"),
    ]
    apply_removal_list(budget, result.removal_list)
    assert result.tokens_after == budget.total_tokens() == 540


def test_turns_of_a_budget_that_match_no_history_are_not_counted_as_gone() -> None:
    history = talk(4)
    budget = InstructionBudget(10_000)
    for number in (3, 5):
        budget.add_child(CONVERSATION, f"turn_{number}", 100, GCPolicy.PARTIAL)
    _, result = collect(
        "gc_budget", history, target=0, budget=budget, config=GCConfig(preserve_recent_turns=1)
    )
    assert {str(item.child_key) for item in result.removal_list} == {"m1", "m2", "m3", "m4", "m5"}


def test_what_shrinks_inside_a_turn_is_listed_under_the_turn_with_what_it_frees() -> None:
    history = talk(4, tools=1)
    budget = by_turns(history, 10_000, NAMED[0])
    booking = Booking(history, budget, lambda m: size_of([m]), lambda: turn_ids(history))
    moved = [
        GCRemovalItem(CONVERSATION, name, 7, "stub", (name,)) for name in ("m6", "m7", "m8", "m9")
    ]
    assert list(booking.items(moved, lambda name: name in ("m8", "m9"))) == [
        GCRemovalItem(CONVERSATION, "turn_1", 14, "stub", ("m6", "m7")),
        GCRemovalItem(CONVERSATION, "turn_2", 14, "stub", ("m8", "m9")),
    ]
