"""The benchmark of the event loop runs, and judges what it measured."""

from __future__ import annotations

from bench.heartbeat import Beats, Outcome, measure, targets
from ctxgc import AsyncSession


def _outcome(latest: float, machine: float) -> Outcome:
    return Outcome(
        opening=Beats([0.1]),
        working=Beats([0.0, latest]),
        idle=Beats([0.0, machine]),
        collections=1,
    )


def test_three_agents_are_measured_in_one_loop() -> None:
    found = measure(AsyncSession, 60)
    assert min(len(found.opening.late), len(found.working.late), len(found.idle.late)) > 1
    assert found.working.late == sorted(found.working.late)


def test_a_loop_may_be_late_by_what_the_machine_is_late_by_and_by_twenty_milliseconds() -> None:
    judged = [
        targets(_outcome(*late), 2_000)[0][1] for late in ((0.019, 0), (0.021, 0), (0.03, 0.04))
    ]
    assert judged == [True, False, True]
