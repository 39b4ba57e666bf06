"""Faults that earlier systems of this kind really had, one test each, by the number of the list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
from ctxgc.collector import GCResult, GCTriggerReason
from ctxgc.config import GCConfig, parse_spec
from ctxgc.errors import ConfigError
from ctxgc.session import Session
from ctxgc.testing import check_history
from ctxgc.tokens import message_tokens
from ctxgc.wire import parse
from tests.fakes import WordCounter
from tests.requirements import requirement
from tests.session.build import filled, make, requests_in
from tests.strategies.build import budget_of, collect, ids, requests, size_of, talk, turn

CONVERSATION = InstructionSource.CONVERSATION


def test_fault_01_the_newest_turns_and_pins_stay_though_they_are_ephemeral() -> None:
    history = talk(6)
    budget = budget_of(history, 10_000, dict.fromkeys(ids(history), GCPolicy.EPHEMERAL))
    config = GCConfig(preserve_recent_turns=2, pinned_turn_indices=[1])
    new, _ = collect("gc_budget", history, target=0, budget=budget, config=config)
    assert requests(new) == [0, 1, 4, 5]


def test_fault_02_no_entry_is_listed_or_counted_twice() -> None:
    history = talk(8)
    budget = budget_of(history, 10_000, dict.fromkeys(ids(history[:8]), GCPolicy.EPHEMERAL))
    budget.add_child(InstructionSource.ENRICHMENT, "docs", 200, GCPolicy.EPHEMERAL)
    total = budget.total_tokens()
    new, result = collect("gc_budget", history, target=0, budget=budget, total_tokens=total)
    keys = [item.child_key for item in result.removal_list]
    assert len(keys) == len(set(keys))
    assert sum(i.tokens_freed for i in result.removal_list) == total - size_of(new)
    assert result.tokens_after == size_of(new)


def test_fault_03_every_removal_reaches_the_budget() -> None:
    session = filled(12, plugin="gc_budget", preserve_recent_turns=2)
    result = session.collect(400)
    assert len(result.removal_list) >= 18
    booked = [session.budget.get_child(i.source, i.child_key) for i in result.removal_list]
    assert set(booked) == {None}


def test_fault_04_hybrid_keeps_pins_and_truncates_the_ancient() -> None:
    history = talk(12)
    asked: list[str] = []

    def summarizer(conversation: str) -> str:
        asked.append(conversation)
        return "Brief."

    options = {
        "preserve_recent_turns": 2, "summarize_middle_turns": 3, "summarizer": summarizer,
    }  # fmt: skip
    config = GCConfig(pinned_turn_indices=[3])
    new, result = collect(
        "gc_hybrid", history, target=0, limit=9_999, options=options, config=config
    )
    reasons = {i: item.reason for item in result.removal_list for i in item.message_ids}
    assert requests(new) == [0, 3, 10, 11]
    assert {reasons[f"m{n}"] for n in (*range(2, 6), *range(8, 14))} == {"ancient_truncated"}
    assert {reasons[f"m{n}"] for n in range(14, 20)} == {"middle_summarized"}
    assert "request 1 " not in asked[0]
    assert "request 7 " in asked[0]


@requirement("S3.config.pinned-turn-indices")
def test_fault_05_a_pin_by_number_stays_with_its_turn() -> None:
    session = make(plugin="gc_truncate", pinned_turn_indices=[2], preserve_recent_turns=1)
    for number in range(30):
        session.extend(turn(number))
        if number in (9, 19, 29):
            session.collect(400)
    assert requests_in(session) == [0, 2, 29]
    assert [m.origin for m in session.history].count("gc_notice") == 1


def test_fault_06_a_collection_of_nothing_adds_nothing() -> None:
    session = filled(4, preserve_recent_turns=5, notify_on_gc=True)
    before = session.view()
    for _ in range(3):
        session.collect(10)
    assert session.view() == before


def test_fault_07_both_file_forms_say_what_they_say() -> None:
    flat = parse_spec({"type": "gc_hybrid", "max_turns": 7}, origin="flat")
    nested = parse_spec(
        {"plugin": "gc_budget", "config": {"target_percent": 50.0}}, origin="nested"
    )
    assert (flat.plugin, flat.config({}).pressure_percent, flat.config({}).max_turns) == (
        "gc_hybrid", 90.0, 7,
    )  # fmt: skip
    assert (nested.plugin, nested.config({}).target_percent) == ("gc_budget", 50.0)
    assert not flat.config({}).continuous
    assert nested.config({"JAATO_GC_TARGET": "40"}).target_percent == 40.0
    with pytest.raises(ConfigError, match="treshold_percent"):
        parse_spec({"type": "truncate", "treshold_percent": 70}, origin="typo")


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_hybrid"])
def test_fault_08_the_target_is_met_and_not_overshot(plugin: str) -> None:
    session = filled(16, plugin=plugin, preserve_recent_turns=2)
    assert session.usage().percent_used >= 80
    result = session.collect()
    # One turn of a hundred words, and the room of a notice: more need not go.
    assert 1_200 - 110 - 50 < result.tokens_after <= 1_200


def test_fault_09_a_wrong_field_is_refused_early_and_fails_no_collection() -> None:
    with pytest.raises(ConfigError, match="turns_removed"):
        GCConfig(notification_template="{turns_removed} gone")
    with pytest.raises(ConfigError, match="turns_removed"):
        make(plugin_config={"notification_template": "{turns_removed} gone"})


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_summarize", "gc_budget", "gc_mark_sweep"])
def test_fault_10_history_and_budget_tell_the_same_tokens(plugin: str) -> None:
    session = filled(12, tools=1, plugin=plugin, preserve_recent_turns=1, recent_messages=1)
    before = session.budget.total_tokens()
    result = session.collect(600)
    held = sum(message_tokens(m, WordCounter()) for m in session.history)
    assert (result.tokens_before, result.tokens_after) == (before, session.budget.total_tokens())
    assert held == session.budget.total_tokens()


def test_fault_11_children_keep_the_time_of_their_first_entry() -> None:
    session = filled(12, tools=1, plugin="gc_mark_sweep", recent_messages=1, recent_user_messages=1)
    born = _births(session)
    session.collect(700)
    session.undo()
    session.report_usage(10**6)
    assert _births(session) == born


def _births(session: Session) -> dict[str, float | None]:
    entry = session.budget.get_entry(CONVERSATION)
    assert entry is not None
    return {key: child.created_at for key, child in entry.children.items()}


def test_fault_12_a_summary_has_an_id_a_place_and_no_second_life_as_a_turn() -> None:
    session = make(
        plugin="gc_summarize",
        preserve_recent_turns=1,
        pinned_turn_indices=[1],
        plugin_config={"summarizer": lambda text: "They worked."},
    )
    for number in range(10):
        session.extend(turn(number))
    session.collect(400)
    names = [m.message_id for m in session.history]
    summary = names.index("gc_summary_1")
    assert session.budget.get_child(CONVERSATION, "gc_summary_1") is not None
    assert requests_in(session) == [0, 1, 9]
    assert summary > names.index(session.history[1].message_id)
    assert [m.text().split()[0] for m in session.history[summary - 1 : summary + 2]] == [
        "answer", "[ctxgc:", "request",
    ]  # fmt: skip
    assert session.usage().turns == 3


def test_fault_13_calls_and_media_are_counted() -> None:
    counter = WordCounter()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = parse({"role": "assistant", "content": "hello"}, "openai")
    call = parse(
        {
            "role": "assistant",
            "content": "hello",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "run", "arguments": json.dumps({"c": "x " * 90})},
                }
            ],
        },
        "openai",
    )
    picture = parse({"role": "user", "content": [image]}, "openai")
    assert message_tokens(call, counter) > message_tokens(text, counter) + 90
    assert message_tokens(picture, counter) > 50


@pytest.mark.parametrize("plugin", ["gc_summarize", "gc_hybrid"])
def test_fault_14_a_failing_summarizer_neither_loses_history_nor_stops_relief(plugin: str) -> None:
    def fails(conversation: str) -> str:
        raise ConnectionError("no route")

    session = filled(
        18, plugin=plugin, preserve_recent_turns=2, plugin_config={"summarizer": fails}
    )
    texts = {s.segment_id: s.text for s in session.segments()}
    result = session.collect()
    assert result.success
    assert session.usage().percent_used <= 60
    assert "ConnectionError" in result.details["summarizer_failures"][0]
    assert {i: session.read(i) for i in texts} == texts


def test_fault_15_recent_turns_are_turns_not_messages() -> None:
    history = talk(6, tools=3)
    new, _ = collect("gc_truncate", history, target=0, options={"preserve_recent_turns": 2})
    assert requests(new) == [0, 4, 5]
    assert len(new) == 1 + 2 * 8


def test_fault_16_nothing_is_dropped_on_the_way_through_json() -> None:
    entry = SourceEntry(
        CONVERSATION, 5, GCPolicy.PARTIAL, "label", {}, {"created_by": "x"}, 3.5, ("a", "b")
    )
    assert SourceEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) == entry
    session = filled(12)
    result = session.collect(300)
    assert GCResult.from_dict(
        {k: v for k, v in json.loads(json.dumps(result.to_dict())).items() if k != "tokens_freed"}
    ) == GCResult.from_dict({k: v for k, v in result.to_dict().items() if k != "tokens_freed"})
    budget = session.budget.to_dict()
    assert InstructionBudget.from_dict(json.loads(json.dumps(budget))).to_dict() == budget


def test_fault_17_among_entries_of_one_age_the_largest_goes_first() -> None:
    history = [parse({"role": "user", "content": "start"}, "openai", "m0")]
    history += [
        parse({"role": "assistant", "content": "word " * size}, "openai", f"m{n}")
        for n, size in enumerate((5, 700, 6, 7), 1)
    ]
    budget = InstructionBudget(2_000)
    for message in history:
        budget.add_child(
            CONVERSATION,
            message.message_id,
            size_of([message]),
            GCPolicy.EPHEMERAL if message.role == "assistant" else GCPolicy.LOCKED,
            created_at=1.0,
            message_ids=(message.message_id,),
        )
    target = size_of(history) - 100
    _, result = collect(
        "gc_budget", history, target=target, budget=budget, config=GCConfig(preserve_recent_turns=0)
    )
    assert [item.child_key for item in result.removal_list] == ["m2"]


@pytest.mark.parametrize(
    "plugin", ["gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep"]
)
def test_fault_18_pending_calls_at_the_end_stay_through_any_relief(plugin: str) -> None:
    session = filled(8, tools=1, plugin=plugin, preserve_recent_turns=0, recent_messages=0)
    pending = turn(8, tools=1)[:2]
    session.extend(pending)
    session.relieve(0)
    assert session.view()[-1] == pending[-1]
    session.append(turn(8, tools=1)[2])
    assert check_history(session.messages(), "openai") == []


def test_continuous_mode_collects_above_the_target_and_spares_the_preservable() -> None:
    session = make(plugin="gc_budget", pressure_percent=None, preserve_recent_turns=1)
    for number in range(12):
        session.extend(turn(number))
        if number == 2:
            session.set_policy(session.history[-1].message_id, GCPolicy.PRESERVABLE)
    spared = session.history[5].message_id
    assert 60 < session.usage().percent_used < 80
    session.messages()
    assert session.usage().percent_used <= 60
    session.relieve(0)
    assert spared in {m.message_id for m in session.history}


def test_a_conditional_schema_is_locked_by_its_first_use() -> None:
    session = make(plugin="gc_budget", limit=400, preserve_recent_turns=0)
    tools: list[Any] = [
        {"name": name, "description": "word " * 50, "input_schema": {"type": "object"}}
        for name in ("used", "unused")
    ]
    session.set_tools(tools, GCPolicy.CONDITIONAL)
    session.append({"role": "user", "content": "hello"})
    session.budget.mark_used(InstructionSource.PLUGIN, "used")
    session.set_tools(tools, GCPolicy.CONDITIONAL)
    result = session.collect(0)
    assert [item.child_key for item in result.removal_list] == ["unused"]
    assert session.budget.get_child(InstructionSource.PLUGIN, "used") is not None


def test_a_provider_that_refuses_gets_a_smaller_view_at_once() -> None:
    session = filled(10, preserve_recent_turns=1)
    result = session.relieve(session.usage().total_tokens // 3)
    assert result.trigger_reason is GCTriggerReason.CONTEXT_LIMIT
    assert result.tokens_after <= result.tokens_before // 3
