"""What is fitted and ablated: the constants of a preset, or those of the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ctxgc.lab.result import RunResult
from ctxgc.thrift.presets import PRESETS

WINDOW = "window"
SUBJECTS = (*PRESETS, WINDOW)

Number = int | float
Constants = dict[str, Number]
"""All constants by their names, without any nesting."""
Reached = dict[str, float]
"""What runs come to: the bill as a share of never pruning, and shares of what was kept or missed."""


class Subject(Protocol):
    """Constants, with what a study of them must know.

    Attributes:
        name: what it is called on the command line.
        regimes: the regimes that runs are played in.
        fixed: constants that are not fitted: promises, and what a reader must be able to follow.
        off: for constants that switch an idea, the value that switches it off.
        together: constants that are ablated as if they were one, under a name for them.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - said above
    @property
    def regimes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def fixed(self) -> frozenset[str]: ...  # noqa: D102
    @property
    def off(self) -> Mapping[str, Number]: ...  # noqa: D102
    @property
    def together(self) -> Mapping[str, Sequence[str]]: ...  # noqa: D102

    def start(self) -> Constants:
        """Return the constants that ship."""
        ...

    def most(self, constant: str) -> float:
        """Return the largest value that makes sense."""
        ...

    def options(self, constants: Constants) -> dict[str, Any]:
        """Return the options of the strategy that put constants in force."""
        ...

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Reached:
        """Return what results come to, given those of each regime."""
        ...

    def loss(self, found: Reached, start: Reached) -> float:
        """Return how bad a result is; `start` is that of the constants that ship."""
        ...

    def file(self, constants: Constants, made: str) -> bytes:
        """Return the file that ships constants, with these in it and with where they come from."""
        ...


def subject(name: str) -> Subject:
    """Return what is called so: a preset, or `window`."""
    # Imported here: each of them needs the names above.
    from ctxgc.lab.subject_preset import PresetSubject  # noqa: PLC0415
    from ctxgc.lab.subject_window import WindowSubject  # noqa: PLC0415

    return WindowSubject() if name == WINDOW else PresetSubject(name)


def share(results: Sequence[RunResult], part: str, whole: str) -> float:
    """Return the sum of one count over that of another; 1 where there is nothing."""
    total = sum(getattr(result, whole) for result in results)
    return float(sum(getattr(result, part) for result in results) / total) if total else 1.0
