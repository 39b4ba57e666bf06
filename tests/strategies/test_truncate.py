"""gc_truncate: the oldest turns go, and only as many as the target asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.errors import ConfigError
from ctxgc.strategies import load_gc_plugin
from tests.requirements import requirement
from tests.strategies.build import collect, ids, requests, size_of, talk


@requirement(
    "S2.tests.test_gc_truncate_removal_list",
    "S2.plugins.truncate-removal-list",
    "S2.plugin.collect-returns",
    "S2.messages.removal-by-id",
)
def test_gc_truncate_removal_list() -> None:
    history = talk(10)
    new, result = collect("gc_truncate", history, target=size_of(history) // 2)
    gone = [m for m in history if m not in new]
    keys = [item.child_key for item in result.removal_list]
    assert keys == ["m1", "turn_1", "turn_2", "turn_3", "turn_4"]
    assert [i for item in result.removal_list for i in item.message_ids] == ids(gone)
    assert {item.reason for item in result.removal_list} == {"truncated"}
    assert sum(item.tokens_freed for item in result.removal_list) == size_of(gone)
    assert result.tokens_freed == size_of(history) - size_of(new)


@requirement("S3.truncate.oldest-removed", "S3.truncate.recent-kept")
def test_the_oldest_turns_go_whole_and_the_recent_stay() -> None:
    history = talk(10)
    new, result = collect("gc_truncate", history, target=0, options={"preserve_recent_turns": 3})
    assert requests(new) == [0, 7, 8, 9]
    assert len(new) == 7
    assert result.shortfall == size_of(new)


@requirement("S3.options.preserve-recent-turns")
def test_the_plugins_own_number_of_turns_overrides_the_configuration() -> None:
    history = talk(10)
    config = GCConfig(preserve_recent_turns=5)
    kept, _ = collect("gc_truncate", history, target=0, config=config)
    fewer, _ = collect(
        "gc_truncate", history, target=0, config=config, options={"preserve_recent_turns": 1}
    )
    assert requests(kept) == [0, 5, 6, 7, 8, 9]
    assert requests(fewer) == [0, 9]


@requirement("S3.truncate.notifies", "S3.options.notification-template")
def test_the_notification_stands_where_messages_left_in_the_words_of_the_template() -> None:
    history = talk(10)
    template = "{plugin_name} freed {tokens_freed} because of {reason}"
    new, result = collect(
        "gc_truncate",
        history,
        target=size_of(history) // 2,
        options={"notify_on_gc": True, "notification_template": template},
    )
    notices = [m for m in new if m.origin == "gc_notice"]
    removed = sum(item.tokens_freed for item in result.removal_list)
    assert [m.text() for m in notices] == [f"gc_truncate freed {removed} because of threshold"]
    assert result.notification == notices[0].text()
    assert new.index(notices[0]) == 1
    assert result.tokens_after == size_of(new)


def test_a_template_with_an_unknown_field_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r'unknown field in notification_template "tokens_fred"'):
        load_gc_plugin("gc_truncate", {"notification_template": "{tokens_fred}"})


def test_an_unknown_option_is_refused_and_the_nearest_known_one_named() -> None:
    with pytest.raises(ConfigError, match="preserve_recent_turns"):
        load_gc_plugin("gc_truncate", {"preserve_recent_turn": 3})


def test_a_turn_limit_removes_turns_though_the_size_is_fine() -> None:
    history = talk(10)
    config = GCConfig(max_turns=4, preserve_recent_turns=2)
    new, result = collect(
        "gc_truncate",
        history,
        target=2 * size_of(history),
        config=config,
        reason=GCTriggerReason.TURN_LIMIT,
    )
    assert requests(new) == [0, 8, 9]
    assert result.shortfall == 0


@given(st.integers(1, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2))
def test_a_bigger_budget_keeps_a_superset(turns: int, one: float, other: float, tools: int) -> None:
    history = talk(turns, 12, tools=tools)
    small, big = sorted(int(share * size_of(history)) for share in (one, other))
    options = {"preserve_recent_turns": 1}
    less, _ = collect("gc_truncate", history, target=small, options=options)
    more, _ = collect("gc_truncate", history, target=big, options=options)
    assert set(ids(less)) <= set(ids(more))
