"""The render cache: the messages are right each time, whatever their receiver does to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import Message
from ctxgc.session.view import RenderCache, View
from ctxgc.wire import parse

MESSAGES = [
    parse({"role": "user", "content": f"text {n}", "meta": [n]}, "openai") for n in range(8)
]


def view_of(messages: Sequence[Message]) -> View:
    """Return a view of messages that came in."""
    view = View()
    for message in messages:
        view.take(message)
    return view


class Incomparable:
    """What a receiver may put into a message, and nobody can compare."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("no truth in this")

    __hash__ = None  # type: ignore[assignment]  # nor hash


@given(st.lists(st.tuples(st.lists(st.sampled_from(MESSAGES)), st.integers(0, 7)), max_size=6))
def test_each_view_is_right_whatever_was_done_to_the_last(
    views: list[tuple[list[Any], int]],
) -> None:
    handout, view = RenderCache(), View()
    for messages, place in views:
        view.show(messages)
        given_out = handout.render(view)
        assert given_out == [message.data for message in messages]
        if messages:
            given_out[place % len(messages)]["meta"].append("changed")
            given_out.pop(place % len(messages))


def test_what_was_left_alone_is_given_out_again() -> None:
    handout, view = RenderCache(), view_of(MESSAGES[:3])
    first = handout.render(view)
    view.take(MESSAGES[3])
    second = handout.render(view)
    assert [one is other for one, other in zip(first, second, strict=False)] == [True] * 3
    assert [copy is message.data for copy, message in zip(second, MESSAGES, strict=False)] == [
        False
    ] * 4


def test_a_changed_message_alone_is_copied_anew() -> None:
    handout, view = RenderCache(), view_of(MESSAGES[:3])
    first = handout.render(view)
    first[1]["cache_control"] = {"type": "ephemeral"}
    second = handout.render(view)
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, False, True]
    assert second[1] == MESSAGES[1].data


def test_what_cannot_be_compared_is_copied_anew() -> None:
    handout, view = RenderCache(), view_of(MESSAGES[:2])
    handout.render(view)[0]["meta"] = Incomparable()
    assert handout.render(view)[0] == MESSAGES[0].data


def test_nothing_is_remembered_of_messages_that_left() -> None:
    handout, view = RenderCache(), view_of(MESSAGES)
    handout.render(view)
    whole = len(handout._reached)
    view.show(MESSAGES[:2])
    handout.render(view)
    assert len(handout._reached) == handout._ends[-1] == whole // 4
    assert len(handout._datas) == len(handout._copies) == len(handout._ends) == 2
