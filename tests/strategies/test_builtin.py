"""What all built-in strategies share: triggers, options, notices, and an untouched input."""

from __future__ import annotations

import copy

import pytest

from ctxgc import Session
from ctxgc.collector import GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.errors import ConfigError
from ctxgc.strategies import BUILT_IN, load_gc_plugin
from tests.requirements import requirement
from tests.strategies.build import collect, ids, size_of, talk

COLLECTORS = sorted(set(BUILT_IN) - {"gc_none"})
THRESHOLD, TURN_LIMIT = GCTriggerReason.THRESHOLD, GCTriggerReason.TURN_LIMIT


@pytest.mark.parametrize("name", COLLECTORS)
def test_the_threshold_and_the_turn_limit_trigger(name: str) -> None:
    plugin = load_gc_plugin(name)
    config = GCConfig(max_turns=5)
    assert plugin.should_collect({"percent_used": 79.9, "turns": 5}, config) == (False, None)
    assert plugin.should_collect({"percent_used": 80.0, "turns": 5}, config) == (True, THRESHOLD)
    assert plugin.should_collect({"percent_used": 1.0, "turns": 6}, config) == (True, TURN_LIMIT)


@pytest.mark.parametrize("pressure", [None, 0])
def test_continuous_mode_triggers_above_the_target(pressure: float | None) -> None:
    plugin = load_gc_plugin("gc_budget")
    config = GCConfig(pressure_percent=pressure)
    assert plugin.should_collect({"percent_used": 60.0}, config) == (False, None)
    assert plugin.should_collect({"percent_used": 60.1}, config) == (True, THRESHOLD)


@requirement("S3.options.notify-on-gc")
@pytest.mark.parametrize("name", COLLECTORS)
def test_every_strategy_notifies_when_it_is_told_to(name: str) -> None:
    history = talk(12)
    target, options = size_of(history) // 3, {"preserve_recent_turns": 1}
    config = GCConfig(recent_messages=1, recent_user_messages=1)
    silent, quiet = collect(name, history, target=target, options=options, config=config)
    told, loud = collect(
        name, history, target=target, options={**options, "notify_on_gc": True}, config=config
    )
    assert [m for m in silent if m.origin == "gc_notice"] == []
    assert quiet.notification is None
    notices = [m for m in told if m.origin == "gc_notice"]
    assert len(notices) == 1
    assert loud.notification == notices[0].text()


@pytest.mark.parametrize("name", COLLECTORS)
def test_the_history_that_came_in_is_not_changed(name: str) -> None:
    history = talk(8, tools=1)
    before = copy.deepcopy(history)
    collect(name, history, target=100)
    assert history == before


@pytest.mark.parametrize("name", COLLECTORS)
def test_an_empty_history_is_nothing_to_do(name: str) -> None:
    new, result = collect(name, [], target=0, limit=100)
    assert (new, result.success, result.items_collected, result.shortfall) == ([], True, 0, 0)


@pytest.mark.parametrize("name", COLLECTORS)
def test_what_left_and_what_stayed_make_up_the_numbers(name: str) -> None:
    history = talk(12, tools=1)
    new, result = collect(name, history, target=size_of(history) // 3)
    added = [m for m in new if m.message_id not in ids(history)]
    freed = sum(item.tokens_freed for item in result.removal_list)
    assert result.tokens_before == size_of(history)
    assert result.tokens_after == size_of(new) == size_of(history) - freed + size_of(added)


@pytest.mark.parametrize(
    "options",
    [
        {"preserve_recent_turns": "many"},
        {"preserve_recent_turns": -1},
        {"summarize_middle_turns": -1},
        {"notify_on_gc": 3},
        {"nonsense": 1},
    ],
)
def test_a_wrong_option_is_a_typed_error(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        load_gc_plugin("gc_truncate", options)


@requirement("S3.options.summarizer")
@pytest.mark.parametrize("name", ["gc_none", "gc_truncate", "gc_budget", "gc_mark_sweep"])
def test_a_strategy_that_does_not_summarize_refuses_a_summarizer(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} does not summarize") as caught:
        load_gc_plugin(name, {"summarizer": "extractive"})
    assert caught.value.details == {"key": "plugin_config"}
    with pytest.raises(ConfigError, match=f"{name} does not summarize"):
        Session(1_000, plugin=name, config=GCConfig(plugin_config={"summarizer": "extractive"}))


@requirement("S3.options.summarizer")
@pytest.mark.parametrize("name", ["gc_summarize", "gc_hybrid"])
def test_a_strategy_that_takes_a_summarizer_uses_it(name: str) -> None:
    asked: list[str] = []

    def brief(conversation: str) -> str:
        asked.append(conversation)
        return "In brief."

    history = talk(12)
    options = {"summarizer": brief, "preserve_recent_turns": 1}
    new, _ = collect(name, history, target=size_of(history) // 4, limit=9_999, options=options)
    assert len(asked) == 1
    assert "In brief." in "".join(m.text() for m in new if m.origin == "gc_summary")
