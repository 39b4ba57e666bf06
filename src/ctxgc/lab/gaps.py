"""Gaps: how far our policies are from the clairvoyants, and ahead of the best of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from ctxgc.lab.figures import Draws, Figure
from ctxgc.lab.result import RunResult

OTHERS = ("peer", "restated")
MOST_WRONG = 0.01


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """One policy beside another, on the runs that both could play.

    `bill` and `non_resident` are ratios of sums, drawn together, so that what makes a run hard for
    both cancels out. `non_resident` is None where the other has nothing that is not resident.
    """

    policy: str
    other: str
    role: str
    bill: Figure
    non_resident: Figure | None


def gaps(kinds: dict[str, str], results: Sequence[RunResult], *, window: bool) -> list[Gap]:
    """Return each of our policies beside each oracle and, in a window, beside the best of the others.

    The best is the one with the fewest needs that are not resident, among those whose requests are
    valid and fit: to send what the window does not hold is no merit.
    """
    own = {name: _by_run(results, name) for name in kinds}
    rivals = [(name, "oracle") for name, kind in kinds.items() if kind == "oracle"]
    best = _best([name for name, kind in kinds.items() if kind in OTHERS], own) if window else None
    rivals += [(best, "best of the others")] if best else []
    ours = [name for name, kind in kinds.items() if kind == "ours"]
    return [
        gap
        for name in ours
        for other, role in rivals
        for gap in _gap((name, own[name]), (other, own[other]), role)
    ]


def _by_run(results: Sequence[RunResult], policy: str) -> dict[str, RunResult]:
    return {r.run: r for r in results if r.policy == policy and not r.error}


def _best(names: Sequence[str], own: dict[str, dict[str, RunResult]]) -> str | None:
    runs = max((len(own[name]) for name in names), default=0)
    sound = [name for name in names if own[name] and len(own[name]) == runs]
    sound = [name for name in sound if _fits(own[name].values())]
    return min(sound, key=lambda name: (sum(map(_missing, own[name].values())), name), default=None)


def _fits(results: Collection[RunResult]) -> bool:
    requests = sum(result.requests for result in results)
    wrong = sum(result.over + result.refused for result in results)
    return wrong <= MOST_WRONG * requests


def _missing(result: RunResult) -> float:
    return result.needs - result.resident


def _gap(
    one: tuple[str, dict[str, RunResult]], other: tuple[str, dict[str, RunResult]], role: str
) -> Iterator[Gap]:
    both = [run for run in one[1] if run in other[1]]
    if not both:
        return
    draws = Draws([one[1][run].group for run in both])

    def ratio(value: Callable[[RunResult], float]) -> Figure:
        return draws.share(
            [value(one[1][run]) for run in both], [value(other[1][run]) for run in both]
        )

    missing = ratio(_missing)
    yield Gap(
        policy=one[0],
        other=other[0],
        role=role,
        bill=ratio(lambda result: result.bill),
        non_resident=missing if missing.of else None,
    )
