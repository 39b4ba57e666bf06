"""The front holds exactly the points that no other beats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing.scales import pareto_front

Point = tuple[float, float]
POINTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda p: (1.0 * p[0], 1.0 * p[1]))
)


def _beats(one: Point, other: Point) -> bool:
    return one != other and one[0] <= other[0] and one[1] >= other[1]


@given(POINTS)
def test_the_front_is_what_a_naive_search_finds(points: list[Point]) -> None:
    best = {point for point in points if not any(_beats(other, point) for other in points)}
    assert [points[place] for place in pareto_front(points)] == sorted(best)


def test_of_equal_points_the_first_counts() -> None:
    assert pareto_front([(1, 1), (1, 1)]) == [0]
