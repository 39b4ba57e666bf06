from __future__ import annotations

from ctxgc import wire
from ctxgc.invariants import ThinkingIsWhole, changed_thinking, first_difference
from ctxgc.invariants.rules import bound_thinking
from tests.wire.talk import parsed, says, thinks, user

WHOLE = ThinkingIsWhole()
REDACTED = {"type": "redacted_thinking", "data": "RW5j"}
ANSWER = {"type": "text", "text": "done"}
THOUGHT = [{"role": "assistant", "content": [thinks(), REDACTED, ANSWER]}]


def test_signed_and_redacted_thinking_is_whole() -> None:
    assert WHOLE.check(parsed("anthropic", user(), THOUGHT)) == []


def test_thinking_that_lost_its_signature_or_data_is_broken() -> None:
    bare = [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking"}, ANSWER]
    history = parsed("anthropic", user(), [{"role": "assistant", "content": bare}])
    assert [each.text for each in WHOLE.check(history)] == [
        "a thinking block has no `signature`",
        "a thinking block has no `data`",
    ]


def test_kept_thinking_must_be_the_same_bytes() -> None:
    before = parsed("anthropic", user(), THOUGHT)
    other = [{"role": "assistant", "content": [thinks("other"), ANSWER]}]
    after = [before[0], wire.parse(other[0], "anthropic", "m1")]
    assert changed_thinking(before, before) == []
    assert [each.message_id for each in changed_thinking(before, after)] == ["m1"]


def test_dropped_thinking_is_no_change_of_thinking() -> None:
    before = parsed("anthropic", user(), THOUGHT)
    stripped = wire.drop_parts(before[1], [0, 1])
    assert stripped is not None
    assert changed_thinking(before, [before[0], stripped]) == []


def test_bound_thinking_behind_an_edit_is_refused() -> None:
    before = parsed("anthropic", user(), says(), user(), THOUGHT)
    edited = [before[0], wire.replace_text(before[1], 0, "[moved out]"), *before[2:]]
    assert first_difference(before, edited) == 1
    assert [each.index for each in bound_thinking(before, edited)] == [3, 3]
    assert bound_thinking(before, wire.strip_bound_thinking(edited, 1)) == []


def test_thinking_in_front_of_the_edit_may_stay() -> None:
    before = parsed("anthropic", user(), THOUGHT, user("more"), says())
    edited = [*before[:3], wire.replace_text(before[3], 0, "[moved out]")]
    assert bound_thinking(before, edited) == []
