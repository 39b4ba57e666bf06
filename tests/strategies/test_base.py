"""The strategy contract: results, removal items, S3's sample plugin."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.budget import InstructionBudget, InstructionSource
from ctxgc.collector import GCRemovalItem, GCResult, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.errors import InputError
from ctxgc.strategies import GCPlugin, run_collect
from tests.requirements import requirement


class MyCustomGCPlugin:
    """S3's sample, as the seed writes it."""

    @property
    def name(self) -> str:
        return "gc_custom"

    def initialize(self, config: Any = None) -> None:
        self._config = config or {}

    def shutdown(self) -> None:
        pass

    def should_collect(self, context_usage: Any, config: Any) -> Any:
        percent = context_usage.get("percent_used", 0)
        if percent >= config.threshold_percent:
            return True, GCTriggerReason.THRESHOLD
        return False, None

    def collect(self, history: Any, context_usage: Any, config: Any, reason: Any) -> Any:
        result = GCResult(
            success=True,
            items_collected=1,
            tokens_before=10,
            tokens_after=4,
            plugin_name=self.name,
            trigger_reason=reason,
        )
        return history[1:], result


class BudgetPlugin(MyCustomGCPlugin):
    """S2's form."""

    seen: Any = None

    def collect(
        self, history: Any, context_usage: Any, config: Any, reason: Any, budget: Any = None
    ) -> Any:
        self.seen = budget
        return super().collect(history, context_usage, config, reason)


class OpenPlugin(MyCustomGCPlugin):
    """Takes whatever comes."""

    seen: Any = None

    def collect(self, *arguments: Any, **options: Any) -> Any:
        self.seen = options["budget"]
        return super().collect(*arguments)


def history() -> list[Message]:
    return [
        Message(message_id=name, role="user", parts=(), data={}, format="openai") for name in "ab"
    ]


@requirement(
    "S2.plugin.runtime-checkable",
    "S3.architecture.plugin-protocol",
    "S3.custom.name",
    "S3.custom.initialize",
    "S3.custom.shutdown",
    "S3.custom.should-collect",
    "S3.custom.collect-four-arguments",
)
def test_the_seeds_sample_plugin_is_a_plugin_and_runs_without_a_budget() -> None:
    plugin = MyCustomGCPlugin()
    assert isinstance(plugin, GCPlugin)
    plugin.initialize()
    config = GCConfig()
    assert plugin.should_collect({"percent_used": 81.0}, config) == (
        True,
        GCTriggerReason.THRESHOLD,
    )
    assert plugin.should_collect({}, config) == (False, None)
    before = history()
    kept, result = run_collect(
        plugin, before, {}, config, GCTriggerReason.MANUAL, budget=InstructionBudget(10)
    )
    assert (kept, result.tokens_freed) == (before[1:], 6)


@requirement("S2.plugin.collect-budget")
@pytest.mark.parametrize("kind", [BudgetPlugin, OpenPlugin])
def test_a_plugin_that_takes_a_budget_gets_it(kind: Any) -> None:
    plugin, budget = kind(), InstructionBudget(10)
    run_collect(plugin, history(), {}, GCConfig(), GCTriggerReason.MANUAL, budget=budget)
    assert plugin.seen is budget


def test_what_lacks_a_method_is_no_plugin() -> None:
    assert not isinstance(object(), GCPlugin)


@requirement(
    "S2.result.fields",
    "S2.result.notification-default",
    "S2.result.details-default",
    "S2.result.error-default",
    "S2.result.removal-list-default",
)
def test_a_result_takes_its_fields_in_the_seeds_order() -> None:
    result = GCResult(True, 2, 100, 60, "gc_truncate", GCTriggerReason.THRESHOLD)
    other = GCResult(True, 2, 100, 60, "gc_truncate", GCTriggerReason.THRESHOLD)
    assert (result.notification, result.details, result.error) == (None, {}, None)
    assert (result.removal_list, result.shortfall, result.tokens_freed) == ([], 0, 40)
    assert result.details is not other.details
    assert result.removal_list is not other.removal_list


@requirement(
    "S2.removal.fields",
    "S2.removal.child-key-default",
    "S2.removal.tokens-freed-default",
    "S2.removal.reason-default",
)
def test_a_removal_item_without_a_child_means_the_whole_source() -> None:
    item = GCRemovalItem(InstructionSource.ENRICHMENT)
    assert (item.source, item.child_key, item.tokens_freed, item.reason, item.message_ids) == (
        InstructionSource.ENRICHMENT,
        None,
        0,
        "",
        (),
    )


@requirement("S2.tests.test_gc_result_removal_list", "S3.architecture.result-tokens-freed")
def test_gc_result_removal_list() -> None:
    items = [
        GCRemovalItem(InstructionSource.CONVERSATION, "msg_1", 30, "oldest_turn", ("m1",)),
        GCRemovalItem(InstructionSource.ENRICHMENT, None, 5, "enrichment_bulk_clear"),
    ]
    result = GCResult(
        True,
        2,
        100,
        65,
        "gc_budget",
        GCTriggerReason.TURN_LIMIT,
        notification="2 items",
        details={"summary_tokens": 4, 1: "one"},
        removal_list=items,
        shortfall=5,
    )
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["tokens_freed"] == 35
    assert plain["removal_list"][0] == {
        "source": "conversation",
        "child_key": "msg_1",
        "tokens_freed": 30,
        "reason": "oldest_turn",
        "message_ids": ["m1"],
    }
    again = GCResult.from_dict(plain)
    assert again.removal_list == items
    assert again.to_dict() == plain


def test_a_wrong_dictionary_is_a_typed_error() -> None:
    with pytest.raises(InputError, match="GC result"):
        GCResult.from_dict({"success": True})


@requirement("S3.architecture.trigger-reasons")
def test_the_trigger_reasons_are_named() -> None:
    assert [reason.value for reason in GCTriggerReason] == [
        "threshold",
        "turn_limit",
        "manual",
        "pre_message",
        "context_limit",
    ]
