"""A run is found by its name, or by a part that only one has."""

from __future__ import annotations

import pytest

from ctxgc.errors import InputError
from ctxgc.lab import run_called
from tests.lab.making import run_of, user

RUNS = [run_of(user("hi"), name=name) for name in ("demo-1", "demo-10", "other/main")]


def test_an_exact_name_wins_over_names_that_hold_it() -> None:
    assert run_called("demo-1", RUNS).id == "demo-1"


def test_a_part_that_only_one_has_is_enough() -> None:
    assert run_called("main", RUNS).id == "other/main"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("demo", "several runs are called 'demo' (name one of these: demo-1, demo-10)"),
        ("dmo-10", "no run is called 'dmo-10' (name one of these: demo-10, demo-1)"),
        ("", "no run is called '' (name one of these: demo-1, demo-10, other/main)"),
    ],
)
def test_other_names_are_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        run_called(name, RUNS)
    assert str(caught.value) == said


def test_no_runs_are_told() -> None:
    with pytest.raises(InputError, match="there are no runs"):
        run_called("x", [])
