"""Messages: how much of two histories is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import common_prefix

OBJECTS = [[n] for n in range(4)]
SEQUENCES = st.lists(st.sampled_from(OBJECTS), max_size=12)


@given(SEQUENCES, SEQUENCES)
def test_it_counts_the_same_objects_from_the_beginning_on(
    before: list[list[int]], now: list[list[int]]
) -> None:
    count = 0
    while count < min(len(before), len(now)) and before[count] is now[count]:
        count += 1
    assert common_prefix(before, now) == count


def test_equal_things_are_not_the_same() -> None:
    assert common_prefix([OBJECTS[0], [1]], [OBJECTS[0], [1]]) == 1
