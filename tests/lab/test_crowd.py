"""Many runs: the same results whatever plays them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from multiprocessing import active_children

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import CtxgcError
from ctxgc.lab import parse_regime
from ctxgc.lab.experiment import Order, play, play_all
from ctxgc.lab.regimes import Regime
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run
from ctxgc.testing import make_session

ORDER = Order(
    policies=("never", "ctxgc"), regime=parse_regime("window:40%"), sheet=price_sheet("openai")
)


def made(number: int) -> Run:
    session = make_session(seed=number, messages=30)
    return Run(
        id=f"run-{number}", group=f"g{number // 2}", source="made", messages=session.messages
    )


def results() -> list[RunResult]:
    return play_all(ORDER, map(made, range(5)))


def test_results_come_in_the_order_of_runs_and_policies() -> None:
    told: list[int] = []
    found = play_all(ORDER, map(made, range(3)), done=lambda: told.append(1))
    expected = [(f"run-{n}", name) for n in range(3) for name in ORDER.policies]
    assert [(result.run, result.policy) for result in found] == expected
    assert ([result.error for result in found], len(told)) == ([""] * 6, 3)


def test_processes_give_the_same_results() -> None:
    assert play_all(ORDER, map(made, range(5)), jobs=2) == results()


def test_a_second_time_gives_the_same_results() -> None:
    assert results() == results()


def test_the_log_is_quiet_while_runs_are_played(caplog: pytest.LogCaptureFixture) -> None:
    tight = Order(policies=("ctxgc",), regime=Regime(kind="window", tokens=600), sheet=ORDER.sheet)
    level = logging.getLogger("ctxgc").level
    play(tight, made(1))
    assert (caplog.records, logging.getLogger("ctxgc").level) == ([], level)


def test_a_process_that_is_ended_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxgc.lab.experiment.play", _end)
    with pytest.raises(CtxgcError, match="fewer --jobs"):
        play_all(ORDER, map(made, range(2)), jobs=2)


def test_a_process_that_ends_while_runs_are_read_is_told_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read() -> Iterator[Run]:
        for number in range(2):
            yield made(number)
            for child in active_children():
                child.join()

    monkeypatch.setattr("ctxgc.lab.experiment.play", _end)
    with pytest.raises(CtxgcError, match="fewer --jobs"):
        play_all(ORDER, read(), jobs=2)


def _end(order: Order, run: Run) -> list[RunResult]:
    os._exit(3)
