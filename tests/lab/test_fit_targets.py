"""Subjects: constants as one flat list, what they reach, and what is asked of them."""

from __future__ import annotations

import msgspec
import pytest

from ctxgc.collector import (
    Coefficients,
    WindowFile,
    coefficients,
    custom,
    preset,
    window_constants,
    window_file,
)
from ctxgc.lab import FIT_TARGETS, Measures, RunResult, fit_target
from ctxgc.lab.fit_targets import GOALS

PRESET, WINDOW = fit_target("default"), fit_target("window")
KEPT: Measures = {
    "bill": 0.7, "strict": 0.99, "clean": 0.999, "line_step": 0.95, "word": 0.9, "worst": 1.0,
}  # fmt: skip
START: Measures = {
    "non_resident_50": 0.02, "non_resident_25": 0.1, "line_step": 0.8, "bill": 0.85,
}  # fmt: skip


def result(**counts: float) -> RunResult:
    plain = {"run": "r", "group": "g", "source": "made", "policy": "p", "limit": 9}
    sizes = {"tokens": 9, "messages": 9, "requests": 9, "unpruned": 100.0}
    return msgspec.convert({**plain, **sizes, **counts}, RunResult)


@pytest.mark.parametrize("name", FIT_TARGETS)
def test_every_constant_has_a_value_that_switches_it_off(name: str) -> None:
    about = fit_target(name)
    assert about.off.keys() == about.start().keys()
    assert about.fixed < about.start().keys()


@pytest.mark.parametrize("name", GOALS)
def test_the_constants_of_a_preset_are_flat_and_become_the_same_preset(name: str) -> None:
    about = fit_target(name)
    assert about.start()["edited.lines"] == preset(name).shares["edited"].lines
    assert custom(about.options(about.start())["constants"]) == preset(name)


def test_a_preset_reaches_shares_of_sums_and_its_worst_run() -> None:
    one = result(bill=50.0, steps=4, strict=3, clean=4, line_steps=2, line_steps_kept=1)
    two = result(bill=90.0, steps=4, strict=4, clean=4, words=5, words_kept=4)
    assert PRESET.reached([[one, two]]) == {
        "bill": 0.7, "strict": 7 / 8, "clean": 1.0, "line_step": 0.5, "word": 0.8, "worst": 0.9,
    }  # fmt: skip


def test_what_is_fitted_reaches_an_excess_of_bits_where_they_were_measured() -> None:
    some = {"bits_steps": 1, "bits": 103, "bits_whole": 100}
    for about, played in ((PRESET, [[result(**some)]]), (WINDOW, [[result(**some)], [result()]])):
        assert about.reached(played)["bits"] == pytest.approx(0.03)
    lossy = {**KEPT, "bill": 0.65, "bits": 0.03}
    assert PRESET.loss({**KEPT, "bits": 0.008}, KEPT) == KEPT["bill"] < PRESET.loss(lossy, KEPT)


def test_nothing_played_is_nothing_lost() -> None:
    assert set(PRESET.reached([[]]).values()) == {1.0}


def test_what_a_preset_misses_costs_more_than_the_bill_can_save() -> None:
    assert PRESET.loss(KEPT, KEPT) == KEPT["bill"]
    for field in ("strict", "clean", "line_step", "word"):
        assert PRESET.loss({**KEPT, "bill": 0.65, field: 0.8}, KEPT) > KEPT["bill"]
    assert PRESET.loss({**KEPT, "worst": 1.2}, KEPT) > KEPT["bill"]


def test_the_window_reaches_what_is_missing_in_each_regime_and_the_rest_of_both() -> None:
    half = result(needs=10, resident=9, line_steps=4, line_steps_kept=4, bill=60.0)
    quarter = result(needs=10, resident=6, line_steps=4, line_steps_kept=2, bill=80.0)
    assert WINDOW.reached([[half], [quarter]]) == {
        "non_resident_50": pytest.approx(0.1),
        "non_resident_25": pytest.approx(0.4),
        "line_step": 0.75,
        "bill": 0.7,
    }


def test_the_window_shall_miss_less_keep_its_lines_and_hardly_cost_more() -> None:
    start = WINDOW.loss(START, START)
    assert start == pytest.approx(1.0)
    better = {**START, "non_resident_50": 0.015}
    assert WINDOW.loss(better, START) < start
    assert WINDOW.loss({**better, "bill": START["bill"] + 0.01}, START) < start
    assert WINDOW.loss({**better, "line_step": 0.78}, START) > start
    assert WINDOW.loss({**better, "bill": START["bill"] + 0.1}, START) > start


def test_the_file_of_presets_gets_the_new_constants_and_says_where_they_come_from() -> None:
    about = fit_target("lean")
    other = {**about.start(), "hold": 9, "edited.names": 0.5}
    made = msgspec.json.decode(about.file(other, "3 runs; seed 1"), type=Coefficients)
    assert made.provenance == {**coefficients().provenance, "lean": "3 runs; seed 1"}
    assert (made.presets["lean"].hold, made.presets["lean"].shares["edited"].names) == (9, 0.5)
    assert made.presets["default"] == preset("default")


def test_the_file_of_the_window_gets_the_new_constants_and_says_where_they_come_from() -> None:
    other = {**WINDOW.start(), "slow": 0.7}
    made = msgspec.json.decode(WINDOW.file(other, "3 runs"), type=WindowFile)
    assert made.provenance == {**window_file().provenance, "fit": "3 runs"}
    assert made.constants == msgspec.structs.replace(window_constants(), slow=0.7)


def test_every_preset_has_a_goal() -> None:
    assert (*GOALS, "window") == FIT_TARGETS
    assert GOALS["lean"].line_step < GOALS["default"].line_step < GOALS["careful"].line_step
