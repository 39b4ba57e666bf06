"""Sizes: those of the view, counted once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector.price import Sizes
from ctxgc.core import Message
from tests.collector.agent import empty_message

MESSAGES = [empty_message("x" * n) for n in range(1, 8)]


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(MESSAGES), max_size=8), st.integers(0, 8)),
        min_size=1,
        max_size=5,
    )
)
def test_they_are_those_of_the_last_view(views: list[tuple[list[Message], int]]) -> None:
    sizes = Sizes(lambda m: len(m.message_id))
    last: list[Message] = []
    for view, same in views:
        sizes.drop(same)
        last = [*last[:same], *view]
        sizes.follow(last)
    expected = [len(m.message_id) for m in last]
    assert [sizes[n] for n in range(len(sizes))] == expected
    for first in range(len(expected) + 1):
        assert sizes.between(first, len(expected)) == sum(expected[first:])


def test_what_stays_at_the_beginning_is_counted_once() -> None:
    counted: list[Message] = []

    def count(each: Message) -> int:
        counted.append(each)
        return 1

    sizes = Sizes(count)
    sizes.follow(MESSAGES[:4])
    sizes.drop(3)
    sizes.follow([*MESSAGES[:3], *MESSAGES[4:]])
    assert counted == [*MESSAGES[:4], *MESSAGES[4:]]
