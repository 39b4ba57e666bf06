"""Choosing one run of many by its name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ctxgc.errors import InputError
from ctxgc.lab.runs import Run


def run_called(name: str, runs: Iterable[Run]) -> Run:
    """Return the run of this id, else the only one whose id holds the name.

    Raises:
        InputError: there is none, or several; the hint names them.
    """
    near: list[Run] = []
    known: list[str] = []
    for run in runs:
        if run.id == name:
            return run
        known.append(run.id)
        if name and name in run.id:
            near.append(run)
    if len(near) == 1:
        return near[0]
    hints = [run.id for run in near] or get_close_matches(name, known, 3, 0.3) or known[:3]
    raise InputError(
        f"several runs are called {name!r}" if near else f"no run is called {name!r}",
        hint=f"name one of these: {', '.join(hints[:5])}" if hints else "there are no runs",
        field="run",
    )
