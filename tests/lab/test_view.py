"""What is still shown of a history when a simple rule edits it."""

from __future__ import annotations

from ctxgc.lab.facts import total_weight
from ctxgc.lab.view import Json, LabView
from tests.lab.builders import user
from tests.lab.long_runs import calls, dialogue, tool


def shown_of(messages: list[Json]) -> LabView:
    shown = LabView()
    shown.take(messages)
    return shown


def test_a_call_and_all_its_results_are_one_unit() -> None:
    messages = [user("a"), calls("b", ["x", "y"]), tool("x", "1"), tool("y", "2"), user("c")]
    shown = shown_of(messages)
    assert shown.units == [range(1), range(1, 4), range(4, 5)]
    assert shown.results == [2, 3]
    assert shown.head == 1


def test_the_size_is_that_of_the_view_after_every_edit() -> None:
    shown = shown_of(dialogue(4).messages)
    shown.mask([2, 4], "[gone]")
    shown.drop([shown.units[3]])
    assert shown.size == total_weight(shown.view())
    assert shown.edits == 2


def test_a_text_that_is_longer_than_the_result_does_not_replace_it() -> None:
    messages = [user("a"), calls("b", ["x"]), tool("x", "1"), user("c")]
    shown = shown_of(messages)
    shown.mask([2], "a longer text than the result")
    assert (shown.view(), shown.edits) == (messages, 0)


def test_only_what_an_earlier_request_carried_was_sent() -> None:
    run = dialogue(3)
    shown = LabView()
    shown.take(run.messages[:1])
    assert shown.sent == 0
    shown.take(run.messages[:3])
    assert shown.sent == 1


def test_neither_the_head_nor_the_last_unit_can_be_dropped() -> None:
    shown = shown_of(dialogue(3).messages[:-1])
    assert shown.droppable() == [range(1, 3), range(3, 5)]
    shown.drop_until(0, shown.droppable())
    assert [message["role"] for message in shown.view()] == ["user", "assistant", "tool"]


def test_a_result_without_a_call_is_a_unit_of_its_own() -> None:
    assert shown_of([tool("x", "1"), user("a")]).units == [range(1), range(1, 2)]
