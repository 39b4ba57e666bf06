"""Ablation: every constant is tried, and a row says what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import ConfigError
from ctxgc.lab import (
    FIT_TARGETS,
    Ablated,
    Experiment,
    Measures,
    Run,
    Trials,
    ablate,
    fit_target,
    variations,
)
from ctxgc.testing import make_session

PRESET = fit_target("default")


def row(**difference: float) -> Ablated:
    moved: Measures = {"bill": 0.0, "strict": 0.0, **difference}
    return Ablated(constant="hold", what="off", values={}, reached=moved, difference=moved)


@pytest.mark.parametrize("name", FIT_TARGETS)
def test_every_constant_is_tried_with_values_that_can_be_played(name: str) -> None:
    about = fit_target(name)
    tried = variations(about)
    assert {key for change in tried for key in change.values} == about.start().keys()
    for change in tried:
        start = {key: about.start()[key] for key in change.values}
        assert change.values != start
        assert about.file({**about.start(), **change.values}, "made")


def test_a_constant_is_switched_off_halved_and_doubled() -> None:
    found = [(c.what, c.values["hold"]) for c in variations(PRESET, ["hold"])]
    hold = PRESET.start()["hold"]
    assert found == [("off", 1), ("half", round(hold / 2)), ("double", 2 * hold)]


def test_no_value_is_tried_twice() -> None:
    """Doubled, this share is whole; and so it is when it is off."""
    found = [
        (c.what, c.values["tight_share"]) for c in variations(fit_target("window"), ["tight_share"])
    ]
    assert found == [("off", 1.0), ("half", 0.46)]


def test_constants_that_go_together_change_together() -> None:
    (off, *_) = variations(PRESET, ["all names"])
    assert set(off.values.values()) == {0.0}
    assert "edited.names" in off.values
    assert "edited.lines" not in off.values


def test_an_unknown_constant_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match='did you mean "hold"'):
        variations(PRESET, ["holt"])


def test_a_row_matters_from_a_tenth_of_a_point_or_a_thousandth_of_the_bill_on() -> None:
    assert [row(bill=m).matters for m in (0.0009, -0.0011)] == [False, True]
    assert [row(strict=m).matters for m in (-0.0009, 0.0011)] == [False, True]


def test_an_ablation_says_what_was_played_and_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "made.jsonl"
    file.write_text("")
    messages = make_session(seed=1, messages=60).messages
    run = Run(id="r", group="g", source="made", messages=messages)
    tried = variations(PRESET, ["guard", "hold"])
    with Trials([run], price_sheet("anthropic-5m")) as trials:
        found = ablate(PRESET, Experiment(policies=(), data=file, every=3), trials, tried)
        alone = trials.judge(PRESET, {**PRESET.start(), **tried[0].values})
    assert (found.subject, found.source, found.runs, found.every) == (
        "default",
        "made.jsonl, one run in 3",
        1,
        3,
    )
    assert [(r.constant, r.what, r.values) for r in found.rows] == [
        (c.constant, c.what, c.values) for c in tried
    ]
    assert found.rows[0].reached == alone
    assert found.rows[0].difference == {k: v - found.reached[k] for k, v in alone.items()}
    assert set(found.idle) == {r.constant for r in found.rows} - {
        r.constant for r in found.rows if r.matters
    }
