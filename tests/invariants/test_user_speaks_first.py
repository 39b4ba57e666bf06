from __future__ import annotations

from ctxgc.invariants import UserSpeaksFirst
from tests.wire.talk import calls, parsed, results, says, user

FIRST = UserSpeaksFirst()
REMINDER = [{"role": "system", "content": "be brief"}]


def test_the_user_speaks_first() -> None:
    assert FIRST.check(parsed("anthropic", user(), says())) == []
    assert FIRST.check([]) == []


def test_system_entries_do_not_count_as_first() -> None:
    assert FIRST.check(parsed("anthropic", REMINDER, user())) == []


def test_an_assistant_message_in_front_is_refused() -> None:
    (found,) = FIRST.check(parsed("anthropic", REMINDER, says(), user()))
    assert (found.index, found.text) == (1, "the first message has the role 'assistant'")


def test_cuts_are_where_the_user_speaks_next() -> None:
    history = parsed(
        "anthropic", user(), calls("anthropic", "a"), results("anthropic", "a"), says(), REMINDER,
        user(), says(),
    )  # fmt: skip
    assert sorted(FIRST.cuts(history)) == [0, 2, 4, 5, 7]
