"""gc_budget: what leaves is decided by policy, in the phases of S2."""

from __future__ import annotations

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector import GCResult
from ctxgc.config import GCConfig
from ctxgc.core import Message
from tests.requirements import requirement
from tests.strategies.build import budget_of, collect, ids, requests, size_of, talk

EPHEMERAL, PARTIAL = GCPolicy.EPHEMERAL, GCPolicy.PARTIAL
PRESERVABLE, LOCKED = GCPolicy.PRESERVABLE, GCPolicy.LOCKED


def mixed(limit_share: float = 1.0) -> tuple[list[Message], InstructionBudget]:
    """Ten turns of two messages: turns 2 and 3 ephemeral, 4 and 5 preservable, the rest partial."""
    history = talk(10)
    policies = {f"m{n}": EPHEMERAL for n in (4, 5, 6, 7)}
    policies |= {f"m{n}": PRESERVABLE for n in (8, 9, 10, 11)}
    return history, budget_of(history, int(limit_share * size_of(history)), policies)


def reasons(result: GCResult) -> list[str]:
    return list(dict.fromkeys(item.reason for item in result.removal_list))


@requirement("S2.tests.test_gc_budget_priority_order", "S2.gc-budget.reasons")
def test_gc_budget_priority_order() -> None:
    history, budget = mixed()
    budget.add_child(InstructionSource.ENRICHMENT, "docs", 70, EPHEMERAL)
    removed: list[list[str]] = []
    for target in (1200, 970, 0):
        new, result = collect(
            "gc_budget",
            history,
            target=target,
            limit=size_of(history),
            budget=budget,
            config=GCConfig(preserve_recent_turns=2),
            total_tokens=budget.total_tokens(),
        )
        removed.append(reasons(result))
        assert result.tokens_after == budget.total_tokens() - result.tokens_freed
    assert removed == [
        ["enrichment_bulk_clear"],
        ["enrichment_bulk_clear", "ephemeral"],
        ["enrichment_bulk_clear", "partial_turn", "ephemeral", "preservable_under_pressure"],
    ]
    assert requests(new) == [0, 8, 9]


@requirement("S2.tests.test_gc_budget_respects_target", "S2.gc-budget.stops-at-target")
def test_gc_budget_respects_target() -> None:
    history, budget = mixed(2.0)
    for target in range(size_of(history), 600, -97):
        new, result = collect(
            "gc_budget",
            history,
            target=target,
            budget=budget,
            config=GCConfig(preserve_recent_turns=1),
        )
        assert result.tokens_after <= target
        assert result.tokens_after == size_of(new)
        last = result.removal_list[-1].tokens_freed if result.removal_list else 0
        # One message less would not have been enough, but for the room of a notice.
        assert not last or result.tokens_after + 2 * last + 48 > target


@requirement("S2.gc-budget.enrichment-bulk", "S2.gc-budget.details")
def test_enrichment_goes_at_once_though_a_part_of_it_would_do() -> None:
    history, budget = mixed()
    for name in ("docs", "memory"):
        budget.add_child(InstructionSource.ENRICHMENT, name, 50, EPHEMERAL)
    total = budget.total_tokens()
    new, result = collect(
        "gc_budget", history, target=total - 10, budget=budget, total_tokens=total
    )
    assert new == history
    assert [(i.source, i.child_key, i.tokens_freed, i.reason) for i in result.removal_list] == [
        (InstructionSource.ENRICHMENT, None, 100, "enrichment_bulk_clear")
    ]
    assert result.details == {
        "enrichment_cleared": True,
        "ephemeral_removed": 0,
        "partial_removed": 0,
        "preservable_removed": 0,
    }
    assert (result.tokens_before, result.tokens_after) == (total, total - 100)


@requirement("S2.gc-budget.ephemeral-oldest-first", "S2.gc-budget.ephemeral-keeps-recent")
def test_ephemeral_entries_go_oldest_first_and_the_recent_ones_stay() -> None:
    history = talk(6)
    budget = budget_of(history, 10_000, dict.fromkeys(ids(history[2:]), EPHEMERAL))
    target = size_of(history) - size_of(history[2:5])
    new, result = collect(
        "gc_budget", history, target=target, budget=budget, config=GCConfig(preserve_recent_turns=1)
    )
    assert [item.child_key for item in result.removal_list][:3] == ["m2", "m3", "m4"]
    least, _ = collect(
        "gc_budget", history, target=0, budget=budget, config=GCConfig(preserve_recent_turns=1)
    )
    assert requests(least) == [0, 5]
    assert set(ids(least)) <= set(ids(new))


@requirement(
    "S2.gc-budget.partial-oldest-first",
    "S2.gc-budget.partial-preserves-recent",
    "S2.gc-budget.partial-respects-pins",
)
def test_partial_turns_go_oldest_first_but_not_the_recent_or_pinned() -> None:
    history = talk(10)
    config = GCConfig(preserve_recent_turns=3, pinned_turn_indices=[2])
    new, result = collect(
        "gc_budget", history, target=0, budget=budget_of(history, 10_000), config=config
    )
    assert requests(new) == [0, 2, 7, 8, 9]
    places = [int(str(item.child_key)[1:]) for item in result.removal_list]
    assert places == sorted(places)


@requirement("S2.gc-budget.preservable-under-pressure")
def test_preservable_entries_go_only_under_pressure() -> None:
    history, budget = mixed(2.0)
    config = GCConfig(preserve_recent_turns=1)
    calm, _ = collect("gc_budget", history, target=0, budget=budget, config=config)
    pressed, result = collect(
        "gc_budget", history, target=0, limit=size_of(history), budget=budget, config=config
    )
    assert requests(calm) == [0, 4, 5, 9]
    assert requests(pressed) == [0, 9]
    assert result.details["preservable_removed"] == 4


@requirement("S2.gc-budget.locked-never")
def test_locked_entries_are_never_touched() -> None:
    history = talk(6, system=True)
    budget = budget_of(history, 100, {"m5": LOCKED, "m6": LOCKED})
    new, _ = collect(
        "gc_budget", history, target=0, budget=budget, config=GCConfig(preserve_recent_turns=0)
    )
    assert {"m0", "m5", "m6"} <= set(ids(new))


@requirement("S2.gc-budget.fallback", "S2.session.no-budget")
def test_without_a_budget_it_truncates() -> None:
    history = talk(10)
    new, result = collect("gc_budget", history, target=size_of(history) // 2)
    same, _ = collect("gc_truncate", history, target=size_of(history) // 2)
    assert new == same
    assert reasons(result) == ["truncated"]


@requirement("S2.gc-budget.nothing-to-free")
def test_at_the_target_it_collects_nothing_and_succeeds() -> None:
    history, budget = mixed()
    new, result = collect("gc_budget", history, target=size_of(history), budget=budget)
    assert (new, result.success, result.items_collected, result.removal_list) == (
        history, True, 0, [],
    )  # fmt: skip


@requirement("S2.gc-budget.schemas-silent", "S2.gc-budget.ephemeral-kinds")
def test_a_discovered_tool_schema_goes_by_its_policy_and_without_a_notice() -> None:
    history = talk(3)
    budget = budget_of(history, 10_000)
    plugin = InstructionSource.PLUGIN
    budget.add_child(plugin, "search", 300, EPHEMERAL, created_at=5.0)
    budget.add_child(plugin, "deploy", 400, GCPolicy.CONDITIONAL, created_at=4.0)
    budget.add_child(plugin, "read", 500, LOCKED, created_at=3.0)
    total = budget.total_tokens()
    new, result = collect(
        "gc_budget",
        history,
        target=total - 600,
        budget=budget,
        options={"notify_on_gc": True},
        total_tokens=total,
    )
    assert (new, result.notification) == (history, None)
    assert [(i.child_key, i.tokens_freed, i.reason) for i in result.removal_list] == [
        ("deploy", 400, "ephemeral"),
        ("search", 300, "ephemeral"),
    ]
    assert result.tokens_after == total - 700


def test_a_message_of_a_group_with_a_stricter_policy_holds_the_whole_group() -> None:
    history = talk(3, tools=1)
    call, answer = history[5].message_id, history[6].message_id
    budget = budget_of(history, 10_000, {call: EPHEMERAL, answer: PRESERVABLE})
    new, _ = collect(
        "gc_budget", history, target=0, budget=budget, config=GCConfig(preserve_recent_turns=1)
    )
    assert {call, answer} <= set(ids(new))
