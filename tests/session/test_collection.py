"""Collections of a session: S2's flow, its budget, its triggers."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.collector import GCRemovalItem, GCResult, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.errors import InputError
from ctxgc.session import Session
from ctxgc.tokens import message_tokens
from tests.fakes import WordCounter
from tests.requirements import requirement
from tests.session.build import events_of, filled, make, requests_in, state_of
from tests.strategies.build import turn

CONVERSATION = InstructionSource.CONVERSATION


class Recorder:
    """A plugin in S2's form that does what it is told and remembers what it was given."""

    name = "gc_recorder"

    def __init__(self, *, success: bool = True, clears: bool = False) -> None:
        self.success = success
        self.clears = clears
        self.given: dict[str, Any] = {}

    def initialize(self, config: Any = None) -> None:
        """Take nothing."""

    def shutdown(self) -> None:
        """Hold nothing."""

    def should_collect(self, context_usage: Any, config: Any) -> Any:
        return context_usage["percent_used"] >= config.threshold_percent, GCTriggerReason.THRESHOLD

    def collect(
        self, history: Any, context_usage: Any, config: Any, reason: Any, budget: Any = None
    ) -> Any:
        self.given = {
            "history": history, "usage": context_usage, "config": config, "reason": reason,
            "budget": budget,
        }  # fmt: skip
        gone = history[2:4]
        items = [
            GCRemovalItem(CONVERSATION, m.message_id, 1, "told", (m.message_id,)) for m in gone
        ]
        if self.clears:
            items.append(GCRemovalItem(InstructionSource.ENRICHMENT, None, 1, "told"))
        result = GCResult(self.success, 2, 0, 0, self.name, reason, removal_list=items)
        return [m for m in history if m not in gone], result


def tokens_of(session: Session) -> int:
    counter = WordCounter()
    return sum(message_tokens(message, counter) for message in session.history)


@requirement("S2.session.passes-budget")
def test_the_plugin_gets_history_usage_configuration_reason_and_budget() -> None:
    plugin = Recorder()
    session = filled(plugin=plugin)
    history = session.history
    session.collect()
    assert plugin.given["history"] == history
    assert plugin.given["usage"]["total_tokens"] == sum(map(_size, history))
    assert plugin.given["usage"].get("context_limit") == 2_000
    assert plugin.given["config"] == session.config
    assert plugin.given["reason"] is GCTriggerReason.MANUAL
    assert plugin.given["budget"] is session.budget


def _size(message: Any) -> int:
    return message_tokens(message, WordCounter())


@requirement(
    "S2.tests.test_session_applies_removal_list",
    "S2.session.updates-history",
    "S2.session.removes-child",
    "S2.session.clears-source",
)
def test_session_applies_removal_list() -> None:
    session = filled(plugin=Recorder(clears=True))
    session.enrich("docs", "ten words of text that the host adds to requests")
    before = session.history
    gone = [m.message_id for m in before[2:4]]
    result = session.collect()
    assert session.history == [*before[:2], *before[4:]]
    assert [session.budget.get_child(CONVERSATION, i) for i in gone] == [None, None]
    enrichment = session.budget.get_entry(InstructionSource.ENRICHMENT)
    assert enrichment is not None
    assert (enrichment.total_tokens(), dict(enrichment.children)) == (0, {})
    assert result.tokens_freed == sum(map(_size, before[2:4])) + 10
    assert result.tokens_after == session.budget.total_tokens()


@requirement("S2.session.failure-changes-nothing")
def test_without_success_nothing_changes() -> None:
    session = filled(plugin=Recorder(success=False))
    before = state_of(session)
    result = session.collect()
    assert not result.success
    assert state_of(session) == before


@requirement("S2.session.emits-update")
def test_a_collection_emits_the_new_size_of_the_budget() -> None:
    session = filled(plugin=Recorder())
    seen = events_of(session)
    result = session.collect()
    kinds = [event.kind for event in seen]
    assert kinds[-2:] == ["collected", "budget_updated"]
    assert seen[-1].data == {"total_tokens": session.budget.total_tokens()}
    assert seen[-2].data["result"] == result.to_dict()


@requirement("S2.tests.test_budget_consistent_after_gc")
@pytest.mark.parametrize(
    "plugin", ["gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep"]
)
def test_budget_consistent_after_gc(plugin: str) -> None:
    session = filled(12, tools=1, plugin=plugin, preserve_recent_turns=2, recent_messages=2)
    for target in (1_500, 900, 500):
        result = session.collect(target)
        assert session.budget.total_tokens() == tokens_of(session) == result.tokens_after
        booked = session.budget.get_entry(CONVERSATION)
        assert booked is not None
        assert set(booked.children) == {m.message_id for m in session.history}


@requirement(
    "S2.tests.test_gc_budget_with_mixed_policies",
    "S2.gc-budget.preservable-kinds",
    "S2.gc-budget.locked-kinds",
    "S2.gc-budget.tokens-after",
)
def test_gc_budget_with_mixed_policies() -> None:
    session = make(plugin="gc_budget", preserve_recent_turns=1, limit=3_000)
    session.set_system("Be careful with production.")
    session.set_tools([{"name": "bash", "input_schema": {"type": "object"}}])
    session.enrich("docs", "retrieved " * 40)
    session.append({"role": "system", "content": "You are an engineer."})
    for number in range(8):
        session.extend(turn(number, tools=1))
    clarification = session.history[8].message_id
    session.set_policy(clarification, GCPolicy.PRESERVABLE)
    policies = {
        key: child.gc_policy
        for source in InstructionSource
        for key, child in (
            session.budget.get_entry(source).children.items()  # type: ignore[union-attr]
            if session.budget.get_entry(source)
            else ()
        )
    }
    request, call, output = (session.history[n].message_id for n in (1, 2, 3))
    assert (policies["system_prompt"], policies["bash"]) == (GCPolicy.LOCKED, GCPolicy.LOCKED)
    assert (policies[request], policies["docs"]) == (GCPolicy.LOCKED, GCPolicy.EPHEMERAL)
    assert (policies[call], policies[output]) == (GCPolicy.EPHEMERAL, GCPolicy.EPHEMERAL)
    result = session.collect(0)
    left = {message.message_id for message in session.history}
    assert clarification in left
    assert requests_in(session) == [0, 7]
    assert result.details["enrichment_cleared"]
    assert result.tokens_after == session.budget.total_tokens()
    assert result.shortfall == result.tokens_after


@requirement(
    "S2.summary.child",
    "S2.summary.policy",
    "S2.summary.label",
    "S2.summary.created-by",
    "S2.summary.numbered",
)
def test_summaries_are_booked_as_numbered_preservable_children() -> None:
    session = make(
        limit=4_000,
        plugin="gc_summarize",
        preserve_recent_turns=1,
        plugin_config={"summarizer": lambda text: "They worked."},
    )
    for number in range(20):
        session.extend(turn(number))
        if number in (9, 19):
            session.collect(400)
    names = [m.message_id for m in session.history if m.origin == "gc_summary"]
    assert names == ["gc_summary_1", "gc_summary_2"]
    for name in names:
        child = session.budget.get_child(CONVERSATION, name)
        assert child is not None
        assert (child.gc_policy, child.label) == (GCPolicy.PRESERVABLE, "Context Summary")
        assert child.metadata == {"created_by": "gc_summarize"}
        assert child.message_ids == (name,)


@requirement("S2.messages.message-id-default")
def test_every_message_gets_an_id_of_its_own() -> None:
    session = filled(5)
    ids = [message.message_id for message in session.history]
    assert len(set(ids)) == len(ids) == 10
    assert all(ids)


def test_the_threshold_triggers_before_a_request_and_the_target_is_met() -> None:
    session = filled(16, preserve_recent_turns=2)
    assert session.usage().percent_used >= 80
    session.messages()
    (result,) = session.gc_history
    assert result.trigger_reason is GCTriggerReason.THRESHOLD
    assert session.usage().percent_used <= 60


@requirement("S3.config.max-turns-triggers")
def test_more_turns_than_the_limit_trigger_a_collection() -> None:
    session = filled(6, 5, max_turns=6, preserve_recent_turns=2)
    session.messages()
    assert session.gc_history == []
    session.extend(turn(6, 5))
    session.messages()
    assert [r.trigger_reason for r in session.gc_history] == [GCTriggerReason.TURN_LIMIT]
    # Some fewer than six, so that the next turn does not trigger another one.
    assert session.usage().turns == 4


@requirement("S3.config.auto-trigger-off")
def test_without_auto_trigger_nothing_is_collected_by_itself() -> None:
    session = filled(16, auto_trigger=False)
    before = session.view()
    assert session.messages() == before
    assert session.gc_history == []


@requirement("S3.config.check-before-send")
def test_the_check_runs_before_each_request_or_after_each_message() -> None:
    before = make(preserve_recent_turns=1)
    after = make(preserve_recent_turns=1, check_before_send=False)
    for number in range(16):
        for message in turn(number):
            before.append(message)
            after.append(message)
    assert before.gc_history == []
    assert [r.trigger_reason for r in after.gc_history] == [GCTriggerReason.THRESHOLD]
    before.messages()
    assert len(before.gc_history) == 1


def test_the_hard_limit_collects_for_a_plugin_that_never_asks() -> None:
    class Sleepy(Recorder):
        def should_collect(self, context_usage: Any, config: Any) -> Any:
            return False, None

    session = filled(17, plugin=Sleepy())
    assert session.usage().percent_used >= 90
    session.messages()
    assert session.gc_history[0].trigger_reason is GCTriggerReason.PRE_MESSAGE


def test_a_refused_view_is_relieved_with_the_reason_context_limit() -> None:
    session = filled(10, preserve_recent_turns=2)
    result = session.relieve(500)
    assert result.trigger_reason is GCTriggerReason.CONTEXT_LIMIT
    assert session.usage().total_tokens <= 500


def test_a_negative_target_is_refused() -> None:
    session = filled(3)
    with pytest.raises(InputError, match="target_tokens cannot be -1"):
        session.collect(-1)


def test_a_collection_that_would_win_next_to_nothing_is_left_undone() -> None:
    session = filled(16, preserve_recent_turns=15)
    before = session.view()
    session.messages()
    (result,) = session.gc_history
    assert session.view() == before
    assert (result.success, result.tokens_freed, result.removal_list) == (True, 0, [])
    assert "tokens could be freed" in result.details["no_progress"]
    session.append({"role": "user", "content": "one more"})
    session.messages()
    assert len(session.gc_history) == 1


def test_manual_gc_is_the_other_name_of_collect() -> None:
    session = filled(12)
    result = session.manual_gc()
    assert session.gc_history == [result]
    assert result.trigger_reason is GCTriggerReason.MANUAL


def test_another_plugin_and_configuration_take_over() -> None:
    session = filled(12, plugin="gc_none")
    session.set_gc_plugin("gc_truncate", GCConfig(preserve_recent_turns=1))
    assert session.plugin.name == "gc_truncate"
    assert session.collect(300).plugin_name == "gc_truncate"
