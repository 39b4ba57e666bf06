"""Fitting: the same seed gives the same constants, and no promise is sold for money."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.lab.fit import (
    FIXED,
    GOALS,
    Goal,
    Reached,
    changed,
    fit,
    play,
    reached,
    with_preset,
)
from ctxgc.lab.needs import Needs
from ctxgc.lab.regimes import Regime
from ctxgc.lab.runs import Run
from ctxgc.testing import make_session
from ctxgc.thrift.presets import Preset, coefficients, preset

START = preset("default")
GOAL = Goal(line_step=0.94, word=0.89)
KEPT = Reached(bill=0.7, strict=0.99, clean=0.999, line_step=0.95, word=0.9, worst=1.0)


@given(st.integers(0, 10_000))
def test_a_change_is_small_valid_and_touches_no_promise(seed: int) -> None:
    other = changed(START, random.Random(seed))
    before, after = msgspec.to_builtins(START), msgspec.to_builtins(other)
    assert all(before[key] == after[key] for key in FIXED)
    moved = [key for key in before if key != "shares" and before[key] != after[key]]
    shares = [k for k in before["shares"] if before["shares"][k] != after["shares"][k]]
    assert len(moved) + len(shares) <= 3
    assert msgspec.convert(after, Preset) == other


def test_the_same_seed_tries_the_same_changes() -> None:
    tried = [changed(START, random.Random(4)) for _ in range(2)]
    assert tried[0] == tried[1] != START


def test_what_is_missing_costs_more_than_the_bill_can_save() -> None:
    assert KEPT.loss(GOAL) == KEPT.bill
    for field in ("strict", "clean", "line_step", "word"):
        worse = msgspec.structs.replace(KEPT, bill=0.65, **{field: 0.8})
        assert worse.loss(GOAL) > KEPT.loss(GOAL)
    assert msgspec.structs.replace(KEPT, worst=1.2).loss(GOAL) > KEPT.loss(GOAL)


def test_the_search_keeps_what_is_better_and_tells_it() -> None:
    told: list[tuple[int, float]] = []

    def judge(constants: Preset) -> Reached:
        return msgspec.structs.replace(KEPT, bill=constants.hold / 10)

    best, found = fit(
        START, GOAL, judge, rounds=80, seed=3, tell=lambda n, r: told.append((n, r.bill))
    )
    assert found == judge(best)
    assert best.hold < START.hold
    assert told[0] == (0, START.hold / 10)
    bills = [bill for _, bill in told]
    assert bills == sorted(bills, reverse=True)
    assert fit(START, GOAL, judge, rounds=80, seed=3, tell=lambda n, r: None) == (best, found)


def test_no_rounds_leave_the_constants_as_they_are() -> None:
    assert fit(START, GOAL, lambda _: KEPT, rounds=0, seed=1, tell=lambda n, r: None) == (
        START, KEPT,
    )  # fmt: skip


def test_runs_are_played_with_the_constants_and_summed_up() -> None:
    runs = [
        Needs(Run(id=f"r{seed}", group="g", source="made", messages=made))
        for seed in range(2)
        for made in [make_session(seed=seed, messages=40).messages]
    ]
    results = play(START, runs, price_sheet("anthropic-5m"), Regime())
    found = reached(results)
    assert [result.error for result in results] == ["", ""]
    assert found.bill == sum(r.bill for r in results) / sum(r.unpruned for r in results)
    assert found.worst == max(result.ratio for result in results)
    assert 0 < found.clean <= 1


def test_nothing_played_is_nothing_lost() -> None:
    assert reached([]) == Reached(bill=1, strict=1, clean=1, line_step=1, word=1, worst=1)


def test_the_file_gets_the_new_constants_and_says_where_they_come_from() -> None:
    other = changed(START, random.Random(1))
    merged = with_preset(coefficients(), "lean", other, "3 runs; seed 1")
    assert merged.presets == {**coefficients().presets, "lean": other}
    assert merged.provenance == {**coefficients().provenance, "lean": "3 runs; seed 1"}


def test_every_preset_has_a_goal() -> None:
    assert GOALS.keys() == {"default", "lean", "careful"}
    assert GOALS["lean"].line_step < GOALS["default"].line_step < GOALS["careful"].line_step
