"""Turns: a user message that is not a tool result, and everything up to the next one."""

from __future__ import annotations

from ctxgc.collector.host import TurnSpan, turns_of
from ctxgc.invariants import groups
from ctxgc.wire import parse, text_message
from tests.strategies.build import talk


def test_a_turn_reaches_to_the_next_request() -> None:
    history = talk(3, tools=1, system=True)
    assert turns_of(history, groups(history)) == [
        TurnSpan(0, 1, 5),
        TurnSpan(1, 5, 9),
        TurnSpan(2, 9, 13),
    ]
    assert list(TurnSpan(0, 1, 3).places()) == [1, 2]


def test_what_we_wrote_opens_no_turn() -> None:
    notice = text_message("user", "some messages left", "openai", "n", "gc_notice")
    summary = text_message("user", "they worked", "openai", "s", "gc_summary")
    assert not notice.opens_turn()
    assert not summary.opens_turn()


def test_a_message_that_also_answers_a_call_stays_with_the_turn_of_the_call() -> None:
    use = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    data = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer, {"type": "text", "text": "and now this"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "fine"}]},
    ]
    history = [parse(message, "anthropic") for message in data]
    assert turns_of(history, groups(history)) == [TurnSpan(0, 0, 4)]


def test_a_history_without_requests_has_no_turns() -> None:
    history = talk(1)[1:]
    assert turns_of(history, groups(history)) == []
