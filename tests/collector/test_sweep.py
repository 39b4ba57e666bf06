"""Choosing what leaves."""

from __future__ import annotations

import pytest

from ctxgc.collector.sweep import choose, leaving_with, order_of_leaving
from ctxgc.core import PruningCandidate
from tests.core.build import calls, cand
from tests.requirements import requirement


def chosen(need: int, *candidates: PruningCandidate) -> dict[str, tuple[str, int]]:
    """Return who leaves, in order, with action and tokens."""
    by_id = {candidate.segment_id: candidate for candidate in candidates}
    taken = choose(order_of_leaving(candidates), by_id.get, need)
    return {candidate.segment_id: (candidate.action, candidate.freed) for candidate in taken}


def who(need: int, *candidates: PruningCandidate) -> list[str]:
    return list(chosen(need, *candidates))


@requirement("S0.sweep.lowest-first", "S1.candidates.sorted")
def test_the_lowest_score_leaves_first_and_equals_keep_their_order() -> None:
    given = [cand("c", 0.3), cand("a", 0.1), cand("b1", 0.2), cand("b2", 0.2)]
    assert [c.segment_id for c in order_of_leaving(given)] == ["a", "b1", "b2", "c"]


@requirement("S0.sweep.unreachable-first", "S1.candidates.unreachable")
def test_superseded_garbage_leaves_first_then_other_garbage_then_the_reachable() -> None:
    given = [
        cand("live", 0.0, reachable=True),
        cand("garbage", 0.5),
        cand("stale", 0.9, superseded=True),
        cand("stale live", 0.1, reachable=True, superseded=True),
    ]
    assert who(100, *given) == ["stale", "garbage", "stale live", "live"]


@requirement("S0.sweep.token-budget", "S1.plan.accumulates")
def test_candidates_are_taken_until_the_need_is_met() -> None:
    given = [cand(f"s{n}", n / 10) for n in range(5)]
    assert [who(need, *given) for need in (0, 1, 10, 11, 50, 99)] == [
        [],
        ["s0"],
        ["s0"],
        ["s0", "s1"],
        ["s0", "s1", "s2", "s3", "s4"],
        ["s0", "s1", "s2", "s3", "s4"],
    ]


def test_a_need_just_met_by_all_takes_all() -> None:
    """Known fault 3: candidates below a fixed score were ignored, so the plan freed nothing."""
    given = [cand("a", 0.0001, 100), cand("b", 0.0002, 100)]
    assert who(150, *given) == ["a", "b"]


def test_what_was_taken_beyond_the_need_is_given_back_the_most_valuable_first() -> None:
    given = [cand("a", 0.1, 5), cand("b", 0.2, 10), cand("c", 0.3, 90)]
    assert who(90, *given) == ["c"]
    assert who(95, *given) == ["a", "c"]


def test_garbage_is_not_given_back_while_the_reachable_leave() -> None:
    given = [cand("garbage", 0.1, 5), cand("live", 0.2, 90, reachable=True)]
    assert who(90, *given) == ["garbage", "live"]


def test_what_a_root_reaches_does_not_leave_for_nothing() -> None:
    given = [cand("empty", 0.1, 0, reachable=True), cand("full", 0.2, 10, reachable=True)]
    assert who(5, *given) == ["full"]


def test_a_bond_leaves_whole_or_not_at_all() -> None:
    pair = ("c", "r")
    given = [cand("c", 0.1, bond=pair), cand("r", 0.1, bond=pair), cand("x", 0.5)]
    assert who(1, *given) == ["c", "r"]
    assert who(1, given[0], given[2]) == ["x"]


def test_a_surplus_smaller_than_the_bond_gives_no_part_of_it_back() -> None:
    pair = ("c", "r")
    given = [cand("c", 0.1, 10, bond=pair), cand("r", 0.1, 10, bond=pair)]
    assert who(11, *given) == ["c", "r"]


def test_what_stays_in_place_leaves_its_bond_whole() -> None:
    pair = ("c", "r")
    shrunk = cand("r", 0.1, 100, bond=pair, action="evacuate", freed=70, reachable=True)
    assert chosen(60, shrunk) == {"r": ("evacuate", 70)}


def test_when_shrinking_is_not_enough_the_bond_is_stashed_whole() -> None:
    pair = ("c", "r")
    given = [
        cand("r", 0.1, 100, bond=pair, action="evacuate", freed=70, reachable=True),
        cand("c", 0.1, 10, bond=pair, reachable=True),
    ]
    assert chosen(105, *given) == {"r": ("stash", 100), "c": ("stash", 10)}


def test_what_shrank_in_a_bond_with_a_root_is_never_stashed_alone() -> None:
    shrunk = cand("r", 0.1, 100, bond=("c", "r"), action="evacuate", freed=70, reachable=True)
    assert chosen(500, shrunk) == {"r": ("evacuate", 70)}


def test_a_part_that_shrank_before_its_bond_left_is_counted_once() -> None:
    pair = ("c", "r")
    given = [
        cand("r", 0.1, 100, bond=pair, action="evacuate", freed=70, reachable=True),
        cand("c", 0.2, 10, bond=pair, reachable=True),
        cand("x", 0.3, 50, reachable=True),
    ]
    assert chosen(150, *given) == {"r": ("stash", 100), "c": ("stash", 10), "x": ("stash", 50)}


@pytest.mark.parametrize("action", ["evacuate", "compress"])
def test_in_place_actions_move_one_segment(action: str) -> None:
    one = cand("a", bond=("a", "b"), action=action, freed=3)
    assert leaving_with(one, {}.get, 3) == [one]


@requirement("S0.sweep.single-pass")
@pytest.mark.parametrize("bonded", [False, True])
def test_a_sweep_is_one_pass_and_one_sort(bonded: bool) -> None:
    """Counted in calls: ten times the candidates, ten times the work; also in one bond of them all."""

    def work(size: int) -> int:
        names = tuple(f"s{n}" for n in range(size))
        given = [
            cand(name, n % 7, bond=names if bonded else (name,)) for n, name in enumerate(names)
        ]
        by_id = {c.segment_id: c for c in given}
        return calls(lambda: choose(order_of_leaving(given), by_id.get, size * 9))

    assert work(3_000) <= 11 * work(300)
