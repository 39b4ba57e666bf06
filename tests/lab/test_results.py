"""Figures: shares of sums, with intervals over whole groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab import Figure
from ctxgc.lab.results import Bootstrap, quantile


def test_a_share_is_of_the_sums_not_of_the_runs() -> None:
    figure = Bootstrap(["a", "b"]).share([1, 90], [10, 100])
    assert (figure.value, figure.of) == (91 / 110, 110)
    assert (figure.low, figure.high) == (0.1, 0.9)


def test_one_group_has_no_spread_however_many_runs_it_has() -> None:
    assert Bootstrap(["a"] * 3).share([1, 2, 3], [4, 4, 4]) == Figure(
        value=0.5, low=0.5, high=0.5, of=12
    )


def test_nothing_is_what_it_was_said_to_be() -> None:
    assert Bootstrap([]).share([], [], 0.0) == Figure(value=0.0, low=0.0, high=0.0)
    assert Bootstrap(["a"]).share([0], [0]) == Figure(value=1.0, low=1.0, high=1.0)


Counts = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=20,
)


@given(Counts, st.randoms())
def test_the_order_of_runs_does_not_matter(
    counts: list[tuple[str, int, int]], chance: object
) -> None:
    def figure(rows: list[tuple[str, int, int]]) -> Figure:
        return Bootstrap([g for g, _, _ in rows]).share(
            [part for _, part, _ in rows], [part + rest for _, part, rest in rows]
        )

    first = figure(counts)
    chance.shuffle(counts)  # type: ignore[attr-defined]
    assert figure(counts) == first
    assert 0 <= first.low <= first.high <= 1


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([3, 1, 2], share) for share in (0, 0.5, 0.99)] == [1, 2, 3]
    assert quantile([], 0.5) == 0


def test_an_interval_of_one_group_is_not_shown_and_another_is() -> None:
    one = Bootstrap(["a", "a"]).share([1, 1], [2, 4])
    two = Bootstrap(["a", "b"]).share([1, 1], [2, 4])
    assert one.interval(".2f", " to ") == ""
    assert two.interval(".0f", " to ", scale=100) == "25 to 50"
