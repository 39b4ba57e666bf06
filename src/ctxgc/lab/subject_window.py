"""The constants of the window: few needs that are not resident, with half and a quarter of the room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.core.readable import readable_json
from ctxgc.lab.result import RunResult
from ctxgc.lab.subject import WINDOW, Constants, Number, Reached, share
from ctxgc.strategies.window_constants import (
    WindowConstants,
    WindowFile,
    window_constants,
    window_file,
)

SPARE_BILL = 0.02
"""What the bill may rise by before it counts."""

_OFF: Mapping[str, Number] = {
    "freeze_share": 1.0,
    "lines_share": 0.0,
    "names_share": 0.0,
    "work_share": 0.0,
    "most_share": 1.0,
    "least_work_share": 0.0,
    "tight_share": 1.0,
    "keep_whole": 1.0,
    "least_saving": 0,
    "least_rate": 0.0,
    "used_by_agent": 0.0,
    "often": 0.0,
    "hex_worth": 1.0,
    "word_worth": 0.0,
    "rare_word": 1_000_000,
    "agent_line": 0.0,
    "view_line": 0.0,
    "other_line": 0.0,
    "digest_line": 0.0,
    "slow": 0.0,
    "fast": 0.0,
}


class WindowSubject(msgspec.Struct, frozen=True):
    """The window, played with half and with a quarter of each run."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return WINDOW

    @property
    def regimes(self) -> tuple[str, ...]:
        """Half of the room and a quarter of it."""
        return ("window:50%", "window:25%")

    @property
    def fixed(self) -> frozenset[str]:
        """A window must not be filled to the brim."""
        return frozenset({"tight_share"})

    @property
    def off(self) -> Mapping[str, Number]:
        """Nothing frozen, no worth, no fading, and so on."""
        return _OFF

    @property
    def together(self) -> Mapping[str, Sequence[str]]:
        """Each one is on its own."""
        return {}

    def start(self) -> Constants:
        """Return the constants that ship."""
        found: Constants = msgspec.to_builtins(window_constants())
        return found

    def most(self, constant: str) -> float:
        """Shares end at 1; a weight has no end."""
        is_share = constant.endswith("_share") or constant == "keep_whole"
        return 1.0 if is_share else float("inf")

    def options(self, constants: Constants) -> dict[str, Any]:
        """Return the option that puts constants in the place of those that ship."""
        return {"window_constants": constants}

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Reached:
        """Return the needs that were not resident in each regime, and the rest of all regimes."""
        results = [result for each in played for result in each]
        missing = {
            f"non_resident_{regime.partition(':')[2].rstrip('%')}": 1
            - share(each, "resident", "needs")
            for regime, each in zip(self.regimes, played, strict=True)
        }
        return {
            **missing,
            "line_step": share(results, "line_steps_kept", "line_steps"),
            "bill": share(results, "bill", "unpruned"),
        }

    def loss(self, found: Reached, start: Reached) -> float:
        """Return what is missing, each regime by what was missing at the start, and a price for the rest."""
        missing = [key for key in found if key.startswith("non_resident")]
        return (
            sum(found[key] / max(start[key], 1e-9) for key in missing) / len(missing)
            + 20.0 * max(0.0, start["line_step"] - found["line_step"])
            + 5.0 * max(0.0, found["bill"] - start["bill"] - SPARE_BILL)
        )

    def file(self, constants: Constants, made: str) -> bytes:
        """Return the file of the window with these constants in it."""
        provenance = {**window_file().provenance, "fit": made}
        return readable_json(WindowFile(provenance, msgspec.convert(constants, WindowConstants)))
