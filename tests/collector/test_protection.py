"""Protection: the messages that no strategy may take out, and by which rule."""

from __future__ import annotations

from typing import Any

from ctxgc.budget import GCPolicy, InstructionBudget
from ctxgc.collector import CollectionRun, GCTriggerReason, Host
from ctxgc.collector.host import root_messages
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.wire import parse
from tests.strategies.build import budget_of, talk


def rules_of(
    history: list[Message], pinned: tuple[str, ...] = (), budget: InstructionBudget | None = None
) -> dict[str, list[str]]:
    found = {rule: list(kept) for rule, kept in root_messages(history, pinned, budget)}
    return {rule: kept for rule, kept in found.items() if kept}


def run(history: list[Message], *, preserve: int = 0, **options: Any) -> CollectionRun:
    return CollectionRun(
        history,
        usage={"pinned_message_ids": options.pop("pinned", ()), "target_tokens": 0},
        config=GCConfig(**options),
        reason=GCTriggerReason.MANUAL,
        budget=None,
        host=Host(),
        preserve=preserve,
    )


def test_every_root_has_its_rule() -> None:
    pending = talk(4, tools=1, system=True)[:-2]
    budget = budget_of(pending, 1_000, {"m7": GCPolicy.LOCKED})
    assert rules_of(pending, ("m4",), budget) == {
        "instructions": ["m0"],
        "pinned": ["m4"],
        "locked": ["m0", "m7"],
        "original request": ["m1"],
        "last request": ["m13"],
        "open tool call": ["m14"],
    }


def test_the_newest_compaction_of_a_provider_is_protected() -> None:
    items = [{"type": "compaction", "encrypted_content": "a"}, {"role": "user", "content": "go"}]
    history = [parse(item, "responses", f"m{n}") for n, item in enumerate([*items, *items])]
    assert rules_of(history) == {
        "original request": ["m1"],
        "last request": ["m3"],
        "compaction": ["m2"],
    }


def test_what_is_bound_to_a_root_stays_but_may_be_edited() -> None:
    made = run(talk(3, tools=1), pinned=("m2",))
    assert made.untouchable == {"m0", "m2", "m8"}
    assert made.roots == {"m0", "m1", "m2", "m8"}


def test_recent_and_pinned_turns_are_protected_and_more_turns_than_there_are_means_all() -> None:
    history = talk(5)
    for recent, pinned, kept in ((2, (1,), [1, 3, 4]), (0, (), []), (9, (), [0, 1, 2, 3, 4])):
        made = run(history, preserve=recent, pinned_turn_indices=pinned)
        answers = {t.index: history[t.stop - 1].message_id for t in made.turns}
        assert [index for index, answer in answers.items() if answer in made.protected] == kept
