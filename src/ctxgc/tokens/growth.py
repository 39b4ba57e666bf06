"""How a provider counts, learned from how its windows grew."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.tokens.calibration import HIGHEST, LOWEST

_LEAST_GROWTH = 2_000


def scale_by_growth(steps: Iterable[tuple[int, int]]) -> float | None:
    """Return how many tokens a provider counts for one of ours; None when that cannot be told.

    A step is by how much a window grew from one request to the next: as we count it, and as the
    provider reports it. What stands beside the messages cancels out. A step that no tokenizer explains
    is left out: something was sent that we do not see, or was cut since.
    """
    sound = [
        (counted, reported)
        for counted, reported in steps
        if counted > 0 and LOWEST <= reported / counted <= HIGHEST
    ]
    grown = sum(counted for counted, _ in sound)
    if grown < _LEAST_GROWTH:
        return None
    return sum(reported for _, reported in sound) / grown
