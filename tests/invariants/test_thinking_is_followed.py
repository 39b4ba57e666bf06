from __future__ import annotations

from ctxgc.invariants import ThinkingIsFollowed
from tests.wire.talk import calls, parsed, results, says, thinks, user

FOLLOW = ThinkingIsFollowed()
REASONING = [{"type": "reasoning", "id": "rs_1", "summary": []}]
THOUGHT = [{"role": "assistant", "content": [thinks()]}]


def test_reasoning_belongs_to_the_item_after_it() -> None:
    history = parsed(
        "responses", user(), REASONING, calls("responses", "a"), results("responses", "a")
    )
    assert FOLLOW.check(history) == []
    assert sorted(FOLLOW.cuts(history)) == [0, 1, 3, 4]


def test_reasoning_that_lost_its_item_is_refused() -> None:
    (found,) = FOLLOW.check(parsed("responses", user(), REASONING, user()))
    assert (found.index, found.pending) == (1, False)
    assert "'rs_1' of type 'reasoning'" in found.provider_error


def test_reasoning_at_the_very_end_waits_for_its_item() -> None:
    history = parsed("responses", user(), REASONING)
    assert FOLLOW.check(history, complete=False) == []
    assert [each.pending for each in FOLLOW.check(history)] == [True]


def test_an_anthropic_answer_does_not_end_in_thinking() -> None:
    (found,) = FOLLOW.check(parsed("anthropic", user(), THOUGHT, user()))
    assert (found.index, found.promise) == (1, "P2.follow")


def test_the_next_assistant_message_may_complete_the_thinking() -> None:
    reminder = [{"role": "system", "content": "be brief"}]
    history = parsed("anthropic", user(), THOUGHT, reminder, says())
    assert FOLLOW.check(history) == []
    assert sorted(FOLLOW.cuts(history)) == [0, 1, 4]
