"""InstructionBudget: one ledger, judged by adding everything up again."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
from ctxgc.errors import InputError
from tests.examples import one_in
from tests.requirements import requirement

CONVERSATION = InstructionSource.CONVERSATION


def budget_with_three(clock: Any = None) -> InstructionBudget:
    budget = InstructionBudget(1_000, clock=clock or (lambda: 100.0))
    budget.set_entry(InstructionSource.SYSTEM, 50)
    budget.add_child(CONVERSATION, "msg_1", 30, GCPolicy.PARTIAL, message_ids=["m1"])
    budget.add_child(CONVERSATION, "msg_2", 20, GCPolicy.EPHEMERAL, message_ids=["m2", "m3"])
    budget.add_child(CONVERSATION, "gc_summary_1", 10, GCPolicy.PRESERVABLE)
    return budget


@requirement("S2.budget.total-tokens")
def test_totals_by_source_policy_and_limit() -> None:
    budget = budget_with_three()
    assert budget.total_tokens() == 110
    assert budget.tokens_by_source() == {
        "system": 50,
        "plugin": 0,
        "enrichment": 0,
        "conversation": 60,
    }
    assert (budget.eligible_tokens(), budget.preservable_tokens(), budget.locked_tokens()) == (
        50,
        10,
        50,
    )
    assert budget.utilization() == 11.0


@requirement("S2.budget.granularity", "S2.budget.add-child", "S2.budget.get-child")
def test_a_child_is_added_and_found_as_the_seed_calls_it() -> None:
    budget = InstructionBudget(context_limit=1_000)
    budget.add_child(
        source=CONVERSATION,
        child_key="gc_summary_1",
        tokens=40,
        gc_policy=GCPolicy.PRESERVABLE,
        label="Context Summary",
        metadata={"created_by": "gc_hybrid"},
    )
    entry = budget.get_entry(CONVERSATION)
    child = budget.get_child(CONVERSATION, "gc_summary_1")
    assert entry is not None
    assert child is not None
    assert entry.total_tokens() == 40
    assert entry.children == {"gc_summary_1": child}
    assert (child.label, child.metadata) == ("Context Summary", {"created_by": "gc_hybrid"})


def test_what_was_never_put_in_is_none() -> None:
    budget = InstructionBudget(10)
    assert budget.get_entry(InstructionSource.ENRICHMENT) is None
    assert budget.get_child(InstructionSource.ENRICHMENT, "x") is None
    assert budget.get_child(InstructionSource.ENRICHMENT, None) is None


def test_a_refreshed_child_keeps_the_time_of_its_first_entry() -> None:
    times = iter([1.0, 2.0, 3.0, 4.0])
    budget = InstructionBudget(1_000, clock=lambda: next(times))
    first = budget.add_child(CONVERSATION, "msg_1", 30, GCPolicy.PARTIAL)
    again = budget.add_child(CONVERSATION, "msg_1", 45, GCPolicy.PARTIAL)
    assert (again.created_at, again.tokens, budget.total_tokens()) == (first.created_at, 45, 45)
    forced = budget.add_child(CONVERSATION, "msg_1", 45, GCPolicy.PARTIAL, created_at=9.0)
    assert forced.created_at == 9.0


@requirement("S2.budget.remove-child")
def test_a_removed_child_takes_its_tokens_and_messages_along() -> None:
    budget = budget_with_three()
    removed = budget.remove_child(CONVERSATION, "msg_1")
    assert (removed.tokens, budget.total_tokens(), budget.get_child(CONVERSATION, "msg_1")) == (
        30,
        80,
        None,
    )
    assert budget.children_of_message("m1") == ()


def test_removing_an_unknown_child_is_an_error_and_changes_nothing() -> None:
    budget = budget_with_three()
    before = budget.to_dict()
    with pytest.raises(InputError, match="no child 'turn_1' under conversation"):
        budget.remove_child(CONVERSATION, "turn_1")
    assert budget.to_dict() == before


@requirement("S2.messages.entry-reference")
def test_children_are_found_and_removed_by_message_id() -> None:
    budget = budget_with_three()
    assert budget.children_of_message("m3") == ((CONVERSATION, "msg_2"),)
    removed = budget.remove_messages(["m3", "m2", "unknown"])
    assert [entry.message_ids for entry in removed] == [("m2", "m3")]
    assert budget.total_tokens() == 90


def test_a_child_is_never_split_between_its_messages() -> None:
    budget = budget_with_three()
    before = budget.to_dict()
    with pytest.raises(InputError, match="'msg_2' also holds"):
        budget.remove_messages(["m1", "m2"])
    assert budget.to_dict() == before


def test_a_message_in_two_children_removes_both() -> None:
    budget = InstructionBudget(100)
    budget.add_child(CONVERSATION, "text", 3, GCPolicy.PARTIAL, message_ids=["m"])
    budget.add_child(CONVERSATION, "output", 4, GCPolicy.EPHEMERAL, message_ids=["m"])
    assert [entry.tokens for entry in budget.remove_messages(["m"])] == [3, 4]
    assert budget.total_tokens() == 0


def test_clearing_a_source_empties_it_and_its_children() -> None:
    budget = budget_with_three()
    budget.set_entry(CONVERSATION, 5, label="talk")
    assert budget.clear(CONVERSATION) == 65
    entry = budget.get_entry(CONVERSATION)
    assert entry is not None
    assert (entry.tokens, dict(entry.children), entry.label, budget.total_tokens()) == (
        0,
        {},
        "talk",
        50,
    )
    assert budget.clear(InstructionSource.PLUGIN) == 0


def test_a_conditional_child_is_locked_by_its_first_use() -> None:
    budget = InstructionBudget(100)
    budget.add_child(InstructionSource.PLUGIN, "tool", 8, GCPolicy.CONDITIONAL)
    budget.add_child(InstructionSource.PLUGIN, "note", 3, GCPolicy.EPHEMERAL)
    assert (budget.eligible_tokens(), budget.locked_tokens()) == (11, 0)
    budget.mark_used(InstructionSource.PLUGIN, "tool")
    budget.mark_used(InstructionSource.PLUGIN, "tool")
    budget.mark_used(InstructionSource.PLUGIN, "note")
    assert (budget.eligible_tokens(), budget.locked_tokens()) == (3, 8)


@requirement("S2.session.clears-source", "S2.entry.changes")
def test_a_source_is_cleared_by_its_entry_as_the_seed_does_it() -> None:
    budget = budget_with_three()
    entry = budget.set_entry(CONVERSATION, 5)
    kept = budget.get_child(CONVERSATION, "msg_2")
    assert kept is not None
    entry.tokens = 0
    assert budget.total_tokens() == 110
    entry.children.clear()
    assert (entry.total_tokens(), budget.total_tokens(), budget.children_of_message("m2")) == (
        0, 50, (),
    )  # fmt: skip
    kept.tokens = 99
    assert budget.total_tokens() == 50


@requirement("S2.entry.changes")
def test_a_change_of_an_entry_is_counted_by_its_budget() -> None:
    budget = budget_with_three()
    child = budget.get_child(CONVERSATION, "msg_1")
    assert child is not None
    child.tokens, child.gc_policy, child.message_ids = 7, GCPolicy.LOCKED, ("m8", "m9")
    child.label, child.metadata["why"] = "first", "said so"
    assert (budget.total_tokens(), budget.locked_tokens()) == (87, 57)
    assert (budget.children_of_message("m1"), budget.children_of_message("m9")) == (
        (), ((CONVERSATION, "msg_1"),),
    )  # fmt: skip
    assert budget.get_child(CONVERSATION, "msg_1") == SourceEntry(
        CONVERSATION, 7, GCPolicy.LOCKED, "first", {}, {"why": "said so"}, 100.0, ("m8", "m9")
    )


def test_children_are_put_in_and_taken_out_at_every_level_and_counted() -> None:
    budget = budget_with_three()
    entry = budget.get_entry(CONVERSATION)
    assert entry is not None
    turn = SourceEntry(CONVERSATION, 3, GCPolicy.PARTIAL)
    entry.children["turn_1"] = turn
    turn.children["part"] = SourceEntry(CONVERSATION, 4, GCPolicy.EPHEMERAL)
    turn.children["part"].children["word"] = SourceEntry(CONVERSATION, 5, GCPolicy.LOCKED)
    turn.children["part"].children["word"].tokens = 6
    assert (budget.total_tokens(), budget.locked_tokens()) == (123, 56)
    del turn.children["part"].children["word"]
    assert budget.total_tokens() == 117
    entry.children["copy"] = turn
    turn.children = {}
    assert (turn.total_tokens(), budget.total_tokens()) == (3, 120)
    entry.children = {"only": SourceEntry(CONVERSATION, 1, GCPolicy.PARTIAL)}
    assert budget.total_tokens() == 51
    with pytest.raises(KeyError):
        del entry.children["turn_1"]


def test_a_change_that_an_entry_cannot_have_is_refused_and_changes_nothing() -> None:
    budget = budget_with_three()
    before = budget.to_dict()
    entry = budget.get_entry(CONVERSATION)
    assert entry is not None
    child = entry.children["msg_1"]
    with pytest.raises(InputError, match="tokens is -1"):
        child.tokens = -1
    with pytest.raises(InputError, match="not a GCPolicy"):
        child.gc_policy = "soft"  # type: ignore[assignment]
    with pytest.raises(InputError, match="stays under its source"):
        child.source = InstructionSource.SYSTEM
    with pytest.raises(InputError, match="cannot be a child of conversation"):
        entry.children["x"] = SourceEntry(InstructionSource.SYSTEM, 1, GCPolicy.LOCKED)
    assert budget.to_dict() == before


def test_the_conversation_comes_back_from_a_dictionary_too() -> None:
    budget = budget_with_three()
    before = budget.to_dict()
    budget.clear(CONVERSATION)
    budget.restore_conversation_from_snapshot(before)
    assert budget.to_dict() == before


@requirement("S2.entry.created-at-restored")
def test_restoring_the_conversation_keeps_times_and_leaves_the_rest() -> None:
    budget = budget_with_three()
    snapshot = budget.snapshot()
    budget.clear(CONVERSATION)
    budget.set_entry(InstructionSource.SYSTEM, 70)
    budget.restore_conversation_from_snapshot(snapshot)
    child = budget.get_child(CONVERSATION, "msg_1")
    assert child is not None
    assert (child.created_at, budget.total_tokens()) == (100.0, 130)
    assert budget.children_of_message("m1") == ((CONVERSATION, "msg_1"),)


def test_a_snapshot_does_not_follow_the_budget() -> None:
    budget = budget_with_three()
    snapshot, before = budget.snapshot(), budget.to_dict()
    budget.remove_child(CONVERSATION, "msg_1")
    budget.set_policy(CONVERSATION, "msg_2", GCPolicy.LOCKED)
    budget.add_child(InstructionSource.ENRICHMENT, "x", 9, GCPolicy.EPHEMERAL)
    assert snapshot.to_dict() == before
    budget.restore(snapshot)
    assert budget.to_dict() == before


def test_the_dictionary_form_is_json_and_complete() -> None:
    budget = budget_with_three()
    plain = json.loads(json.dumps(budget.to_dict()))
    again = InstructionBudget.from_dict(plain)
    assert again.to_dict() == plain == budget.to_dict()
    assert again.children_of_message("m2") == ((CONVERSATION, "msg_2"),)


@pytest.mark.parametrize(
    "data", [{}, {"context_limit": 0}, {"context_limit": 5, "entries": [{"source": "system"}]}]
)
def test_a_wrong_dictionary_is_a_typed_error(data: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        InstructionBudget.from_dict(data)


@pytest.mark.parametrize("limit", [0, -5, 1.5, True, "many"])
def test_a_limit_that_is_no_window_is_refused(limit: Any) -> None:
    with pytest.raises(InputError, match="context_limit is"):
        InstructionBudget(limit)


def test_bad_children_change_nothing() -> None:
    budget = budget_with_three()
    before = budget.to_dict()
    for key, tokens in (("", 1), ("msg_9", -1), ("msg_1", -1)):
        with pytest.raises(InputError):
            budget.add_child(CONVERSATION, key, tokens, GCPolicy.PARTIAL)
    with pytest.raises(InputError):
        budget.set_entry("nowhere", 1)  # type: ignore[arg-type]
    assert budget.to_dict() == before


sources = st.sampled_from(list(InstructionSource))
policies = st.sampled_from(list(GCPolicy))
counts = st.integers(0, 10_000)
keys = st.sampled_from("abcde")
ids = st.lists(st.sampled_from(["m1", "m2", "m3", "m4"]), max_size=3)


class LedgerMachine(RuleBasedStateMachine):
    """Random operations; a plain dictionary keeps the second opinion."""

    snapshots = Bundle("snapshots")

    def __init__(self) -> None:
        super().__init__()
        self.budget = InstructionBudget(5_000, clock=lambda: 1.0)
        self.model: dict[tuple[InstructionSource, str | None], SourceEntry] = {}

    @rule(source=sources, key=keys, tokens=counts, policy=policies, message_ids=ids)
    def add(self, source: Any, key: str, tokens: int, policy: Any, message_ids: list[str]) -> None:
        entry = self.budget.add_child(source, key, tokens, policy, message_ids=message_ids)
        self.model[source, key] = entry

    @rule(source=sources, tokens=counts, policy=policies)
    def own(self, source: Any, tokens: int, policy: Any) -> None:
        self.model[source, None] = self.budget.set_entry(source, tokens, policy)

    @rule(source=sources, key=keys)
    def remove(self, source: Any, key: str) -> None:
        if (source, key) in self.model:
            assert self.budget.remove_child(source, key) == self.model.pop((source, key))
        else:
            with pytest.raises(InputError):
                self.budget.remove_child(source, key)

    @rule(source=sources)
    def clear(self, source: Any) -> None:
        freed = self.budget.clear(source)
        gone = [place for place in self.model if place[0] == source]
        assert freed == sum(self.model.pop(place).tokens for place in gone)

    @rule(message_ids=ids)
    def remove_messages(self, message_ids: list[str]) -> None:
        wanted = set(message_ids)
        hit = {
            place
            for place, entry in self.model.items()
            if place[1] and wanted & set(entry.message_ids)
        }
        if any(set(self.model[place].message_ids) - wanted for place in hit):
            with pytest.raises(InputError):
                self.budget.remove_messages(message_ids)
            return
        assert len(self.budget.remove_messages(message_ids)) == len(hit)
        for place in hit:
            del self.model[place]

    @rule(target=snapshots)
    def snapshot(self) -> Any:
        return self.budget.snapshot(), dict(self.model)

    @rule(saved=snapshots)
    def restore(self, saved: Any) -> None:
        snapshot, model = saved
        self.budget.restore(snapshot)
        self.model = dict(model)

    @invariant()
    def every_sum_agrees(self) -> None:
        by_source: Counter[str] = Counter()
        by_policy: Counter[str] = Counter()
        for (source, _), entry in self.model.items():
            by_source[source] += entry.tokens
            by_policy[entry.gc_policy] += entry.tokens
        assert self.budget.tokens_by_source() == {s: by_source[s] for s in InstructionSource}
        assert self.budget.tokens_by_policy() == {p: by_policy[p] for p in GCPolicy}
        assert self.budget.total_tokens() == sum(by_source.values())
        entries = [self.budget.get_entry(source) for source in InstructionSource]
        assert sum(e.total_tokens() for e in entries if e) == self.budget.total_tokens()

    @invariant()
    def every_message_is_found(self) -> None:
        for name in ("m1", "m2", "m3", "m4"):
            expected = {p for p, e in self.model.items() if p[1] and name in e.message_ids}
            assert set(self.budget.children_of_message(name)) == expected


TestLedger = LedgerMachine.TestCase
TestLedger.settings = one_in(2, stateful_step_count=30)
