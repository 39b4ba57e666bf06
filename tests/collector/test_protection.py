"""Protection: the messages that no strategy may take out, and why."""

from __future__ import annotations

from ctxgc.budget import GCPolicy
from ctxgc.collector.host import protect_roots, protect_turns, turns_of
from ctxgc.config import GCConfig
from ctxgc.invariants import groups
from ctxgc.wire import parse
from tests.strategies.build import budget_of, ids, talk


def test_roots_are_protected_for_their_reasons() -> None:
    history = talk(4, tools=1, system=True)
    pending = history[:-2]
    budget = budget_of(pending, 1_000, {"m7": GCPolicy.LOCKED})
    keep = protect_roots(pending, {"pinned_message_ids": {"m4"}}, budget, groups(pending))
    assert {i: keep.reason(i) for i in ids(pending) if i in keep} == {
        "m0": "instructions",
        "m1": "original request",
        "m4": "pinned",
        "m7": "locked",
        "m13": "last request",
        "m14": "open tool call",
    }


def test_the_newest_compaction_of_a_provider_is_protected() -> None:
    items = [{"type": "compaction", "encrypted_content": "a"}, {"role": "user", "content": "go"}]
    history = [parse(item, "responses", f"m{n}") for n, item in enumerate([*items, *items])]
    keep = protect_roots(history, {}, None, groups(history))
    assert {i: keep.reason(i) for i in ids(history) if i in keep} == {
        "m1": "original request",
        "m2": "compaction",
        "m3": "last request",
    }


def test_a_sealed_protection_reaches_over_whole_groups_and_a_copy_goes_its_own_way() -> None:
    history = talk(3, tools=1)
    keep = protect_roots(history, {"pinned_message_ids": {"m2"}}, None, groups(history))
    sealed = keep.copy()
    sealed.seal()
    assert "m1" in sealed
    assert "m1" not in keep


def test_recent_and_pinned_turns_are_protected_and_more_turns_than_there_are_means_all() -> None:
    history = talk(5)
    turns = turns_of(history, groups(history))
    for recent, pinned, kept in ((2, (1,), [1, 3, 4]), (0, (), []), (9, (), [0, 1, 2, 3, 4])):
        keep = protect_roots([], {}, None, [])
        protect_turns(keep, history, turns, recent, GCConfig(pinned_turn_indices=pinned))
        assert [t.index for t in turns if history[t.start].message_id in keep] == kept
