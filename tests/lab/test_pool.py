"""Many runs: the same results whatever plays them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from multiprocessing import active_children

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import CtxgcError
from ctxgc.lab import Regime, Run, RunResult, parse_regime
from ctxgc.lab.pool import RunOrder, play, play_all
from tests.lab.builders import generated_run

ORDER = RunOrder(
    policies=("never", "ctxgc"), regime=parse_regime("window:40%"), sheet=price_sheet("openai")
)


def results() -> list[RunResult]:
    return play_all(ORDER, map(generated_run, range(5)))


def test_results_come_in_the_order_of_runs_and_policies() -> None:
    told: list[int] = []
    found = play_all(ORDER, map(generated_run, range(3)), done=lambda: told.append(1))
    expected = [(f"run-{n}", name) for n in range(3) for name in ORDER.policies]
    assert [(result.run, result.policy) for result in found] == expected
    assert ([result.error for result in found], len(told)) == ([""] * 6, 3)


def test_processes_give_the_same_results() -> None:
    assert play_all(ORDER, map(generated_run, range(5)), jobs=2) == results()


def test_a_second_time_gives_the_same_results() -> None:
    assert results() == results()


def test_the_log_is_quiet_while_runs_are_played(caplog: pytest.LogCaptureFixture) -> None:
    tight = RunOrder(
        policies=("ctxgc",), regime=Regime(kind="window", tokens=600), sheet=ORDER.sheet
    )
    level = logging.getLogger("ctxgc").level
    play(tight, generated_run(1))
    assert (caplog.records, logging.getLogger("ctxgc").level) == ([], level)


def test_a_process_that_is_ended_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxgc.lab.pool.play", _end)
    with pytest.raises(CtxgcError, match="fewer --jobs"):
        play_all(ORDER, map(generated_run, range(2)), jobs=2)


def test_a_process_that_ends_while_runs_are_read_is_reported_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read() -> Iterator[Run]:
        for number in range(2):
            yield generated_run(number)
            for child in active_children():
                child.join()

    monkeypatch.setattr("ctxgc.lab.pool.play", _end)
    with pytest.raises(CtxgcError, match="fewer --jobs"):
        play_all(ORDER, read(), jobs=2)


def _end(order: RunOrder, run: Run) -> list[RunResult]:
    os._exit(3)
