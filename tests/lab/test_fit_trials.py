"""Trials: the same runs with other options, and the same results whatever the jobs."""

from __future__ import annotations

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import InputError
from ctxgc.lab import Run, RunResult, Trials, fit_target, parse_regime, replay_run
from ctxgc.lab.bits import AnswerBits, has_zstd
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies_ctxgc import CtxgcPolicy
from ctxgc.testing import make_session

SHEET = price_sheet("anthropic-5m")
REGIMES = [parse_regime("window:50%"), parse_regime("window:25%")]
RUNS = [
    Run(id=f"r{n}", group="g", source="made", messages=make_session(seed=n, messages=40).messages)
    for n in range(2)
]


def played(jobs: int, told: list[int]) -> list[list[RunResult]]:
    with Trials(RUNS, SHEET, jobs, lambda: told.append(1)) as trials:
        return trials.play({"preset": "lean"}, REGIMES)


def test_runs_are_played_regime_by_regime_with_the_options() -> None:
    told: list[int] = []
    ours = CtxgcPolicy(name="trial", options={"preset": "lean"})
    read = [Needs(run) for run in RUNS]
    bits = [AnswerBits(needs) if has_zstd() else None for needs in read]
    expected = [
        [
            replay_run(ours, needs.run, regime, SHEET, needs=needs, bits=measured)
            for needs, measured in zip(read, bits, strict=True)
        ]
        for regime in REGIMES
    ]
    assert played(1, told) == expected
    assert len(told) == 4


def test_processes_find_the_same() -> None:
    told: list[int] = []
    assert played(2, told) == played(1, [])
    assert len(told) == 4


def test_options_that_cannot_be_played_are_told_with_the_run() -> None:
    with Trials(RUNS, SHEET) as trials, pytest.raises(InputError, match="run r0: ConfigError"):
        trials.play({"presets": "lean"}, REGIMES)


def test_constants_are_judged_by_what_they_reach() -> None:
    window = fit_target("window")
    with Trials(RUNS, SHEET) as trials:
        shipped = trials.judge(window, window.start())
        assert shipped == window.reached(trials.play({}, REGIMES))
        worthless = {**window.start(), "least_rate": 1e9, "names_share": 0.0}
        assert trials.judge(window, worthless)["bill"] < shipped["bill"]
