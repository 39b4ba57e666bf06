"""Names stay beside their points and apart from one another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing.svg import place_labels, text_width

BOX = (0.0, 0.0, 700.0, 400.0)


def test_a_lone_name_stands_at_the_right_of_its_point() -> None:
    (place,) = place_labels(["a"], [(100.0, 100.0)], BOX)
    assert place == (109.0, 104.0, "start", False)


def test_a_name_at_the_right_edge_turns_to_the_left() -> None:
    (place,) = place_labels(["a long name"], [(690.0, 100.0)], BOX)
    assert place.anchor == "end"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), unique=True))
def test_names_of_spread_points_do_not_touch(cells: list[tuple[int, int]]) -> None:
    spots = [(60.0 + 140 * x, 40.0 + 90 * y) for x, y in cells]
    places = place_labels(["policy"] * len(spots), spots, BOX)
    lefts = {"start": 0.0, "middle": 0.5, "end": 1.0}
    wide = text_width("policy")
    boxes = [(p.x - lefts[p.anchor] * wide, p.y) for p in places]
    for n, (x, y) in enumerate(boxes):
        for other_x, other_y in boxes[:n]:
            assert abs(x - other_x) >= wide or abs(y - other_y) >= 12
