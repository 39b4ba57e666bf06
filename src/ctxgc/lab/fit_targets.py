"""What is fitted and ablated: the constants of a preset, or those of the window strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ctxgc.collector import (
    PRESETS,
    Coefficients,
    Preset,
    Shares,
    WindowConstants,
    WindowFile,
    coefficients,
    preset,
    window_constants,
    window_file,
)
from ctxgc.drawing import readable_json
from ctxgc.lab.results import RunResult

WINDOW = "window"
FIT_TARGETS = (*PRESETS, WINDOW)

Number = int | float
Constants = dict[str, Number]
"""All constants by their names, without any nesting."""
Measures = dict[str, float]
"""What the runs reach: the bill as a share of never pruning, and shares of what was kept or missed."""


class FitTarget(Protocol):
    """A set of constants, with what is needed to fit and ablate them.

    Attributes:
        name: its name on the command line.
        regimes: the regimes that runs are played in.
        fixed: constants that are not fitted: promises, and what keeps a view readable.
        off: for each constant the value that switches its idea off.
        together: groups of constants that are ablated as one, by their name.
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
        """Return the strategy options that set these constants."""
        ...

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Measures:
        """Return what the results reach, given those of each regime."""
        ...

    def loss(self, found: Measures, start: Measures) -> float:
        """Return how bad a result is; `start` is the result of the constants that ship."""
        ...

    def file(self, constants: Constants, made: str) -> bytes:
        """Return the file that ships these constants, with `made` as their provenance."""
        ...


def fit_target(name: str) -> FitTarget:
    """Return the target of this name: a preset, or `window`."""
    return WindowTarget() if name == WINDOW else PresetTarget(name)


def share(results: Sequence[RunResult], part: str, whole: str) -> float:
    """Return the sum of one count over that of another; 1 if both are empty."""
    total = sum(getattr(result, whole) for result in results)
    return float(sum(getattr(result, part) for result in results) / total) if total else 1.0


def excess(results: Sequence[RunResult]) -> Measures:
    """Return the copied bits beyond those with the whole history, as a share; nothing if not measured."""
    if not any(result.bits_steps for result in results):
        return {}
    return {"bits": share(results, "bits", "bits_whole") - 1}


# -- Presets, which prune to save money: a low bill that keeps what the preset promises


_PARTS = Shares.__struct_fields__
_NEVER = 1_000_000


class PresetGoal(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset must keep, as shares, with a margin for unseen runs."""

    strict: float = 0.9715
    clean: float = 0.9903
    line_step: float
    word: float
    worst: float = 1.045
    bits: float

    def missed(self, found: Measures) -> float:
        """Return a penalty for every missing point."""
        return (
            2.0 * max(0.0, self.strict - found["strict"])
            + 4.0 * max(0.0, self.clean - found["clean"])
            + 1.5 * max(0.0, self.line_step - found["line_step"])
            + 1.0 * max(0.0, self.word - found["word"])
            + 1.0 * max(0.0, found["worst"] - self.worst)
            + 5.0 * max(0.0, found.get("bits", 0.0) - self.bits)
        )


GOALS: Mapping[str, PresetGoal] = {
    "default": PresetGoal(line_step=0.9430, word=0.8950, bits=0.009),
    "lean": PresetGoal(line_step=0.9230, word=0.0, bits=0.015),
    "careful": PresetGoal(line_step=0.9630, word=0.9240, bits=0.005),
}

_OFFERS = frozenset({"trims_calls", "thin_numbers", "groups_hits"})
"""What changes texts that others leave alone: a matter of taste, and not of fitting."""
_TENTH = 10

_PRESET_OFF: Mapping[str, Number] = {
    "hold": 1,
    "work_hold": 1,
    "after_check": 0,
    "after_user": 0,
    "bonus_from": 0,
    "patience": 0.0,
    "horizon": _NEVER,
    "guard": float(_NEVER),
    "least_tokens": 0,
    "least_saving": 0.0,
    "least_names": 0,
    "word_weight": 0.0,
    "floor": 0.0,
    "copy_lines": _NEVER,
    "copy_chars": 0,
    "copy_saving": 0.0,
}


class PresetTarget(msgspec.Struct, frozen=True):
    """One preset, played in a window that is large enough."""

    name: str

    @property
    def regimes(self) -> tuple[str, ...]:
        """Cost only: pruning only saves money."""
        return ("cost",)

    @property
    def fixed(self) -> frozenset[str]:
        """Promises, and what keeps a view readable."""
        return _OFFERS | {"guard", "copy_lines", "copy_chars", "least_saving"}

    @property
    def off(self) -> Mapping[str, Number]:
        """No share, no hold, no guard, and so on; what only some presets do is inverted."""
        start = self.start()
        return {
            **dict.fromkeys(_shares(start), 0.0),
            **_PRESET_OFF,
            "trims_calls": not start["trims_calls"],
            "groups_hits": not start["groups_hits"],
            "thin_numbers": 0 if start["thin_numbers"] else _TENTH,
        }

    @property
    def together(self) -> Mapping[str, Sequence[str]]:
        """The name shares of all kinds of results, which differ little."""
        return {"all names": [key for key in _shares(self.start()) if key.endswith(_PARTS[1])]}

    def start(self) -> Constants:
        """Return the constants that ship; shares as `kind.lines` and `kind.names`."""
        fields: dict[str, Any] = msgspec.to_builtins(preset(self.name))
        shares: dict[str, list[float]] = fields.pop("shares")
        parts = {
            f"{kind}.{_PARTS[n]}": v for kind, both in shares.items() for n, v in enumerate(both)
        }
        return {**fields, **parts}

    def most(self, constant: str) -> float:
        """Shares end at 1; counts are unbounded."""
        return 1.0 if "." in constant else float(_NEVER)

    def options(self, constants: Constants) -> dict[str, Any]:
        """Return the option that replaces the preset's constants."""
        return {"constants": msgspec.to_builtins(_preset(constants))}

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Measures:
        """Return the bill, and the shares of what was kept."""
        results = [result for each in played for result in each]
        return {
            "bill": share(results, "bill", "unpruned"),
            "strict": share(results, "strict", "steps"),
            "clean": share(results, "clean", "steps"),
            "line_step": share(results, "line_steps_kept", "line_steps"),
            "word": share(results, "words_kept", "words"),
            "worst": max((result.ratio for result in results), default=1.0),
            **excess(results),
        }

    def loss(self, found: Measures, start: Measures) -> float:  # noqa: ARG002 - the goal is set
        """Return the bill plus a penalty for broken promises of the preset."""
        return found["bill"] + GOALS[self.name].missed(found)

    def file(self, constants: Constants, made: str) -> bytes:
        """Return the file of all presets with these constants in it."""
        known = coefficients()
        return readable_json(
            Coefficients(
                provenance={**known.provenance, self.name: made},
                presets={**known.presets, self.name: _preset(constants)},
            )
        )


def _shares(constants: Constants) -> list[str]:
    return [key for key in constants if "." in key]


def _preset(constants: Constants) -> Preset:
    fields: dict[str, Any] = {key: value for key, value in constants.items() if "." not in key}
    kinds = dict.fromkeys(key.partition(".")[0] for key in _shares(constants))
    fields["shares"] = {kind: [constants[f"{kind}.{part}"] for part in _PARTS] for kind in kinds}
    return msgspec.convert(fields, Preset)


# -- The window: few needs that are not resident, in half and in a quarter of the room


_SPARE_BILL = 0.02
"""By how much the bill may rise before it counts."""

_WINDOW_OFF: Mapping[str, Number] = {
    "freeze_share": 1.0,
    "lines_share": 0.0,
    "names_share": 0.0,
    "least_work_share": 0.0,
    "tight_share": 1.0,
    "work_margin": 0.0,
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
    "value_line": 0.0,
    "asked": 0.0,
    "slow": 0.0,
    "fast": 0.0,
}


class WindowTarget(msgspec.Struct, frozen=True):
    """The window, played with half and with a quarter of each run."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return WINDOW

    @property
    def regimes(self) -> tuple[str, ...]:
        """Half of the room and a quarter of it."""
        return ("window:50%", "window:25%")

    @property
    def fixed(self) -> frozenset[str]:
        """A window must not be filled completely."""
        return frozenset({"tight_share", "work_margin"})

    @property
    def off(self) -> Mapping[str, Number]:
        """Nothing frozen, no worth, no fading, and so on."""
        return _WINDOW_OFF

    @property
    def together(self) -> Mapping[str, Sequence[str]]:
        """None: each constant is ablated alone."""
        return {}

    def start(self) -> Constants:
        """Return the constants that ship."""
        found: Constants = msgspec.to_builtins(window_constants())
        return found

    def most(self, constant: str) -> float:
        """Shares end at 1; weights are unbounded."""
        is_share = constant.endswith("_share") or constant == "keep_whole"
        return 1.0 if is_share else float("inf")

    def options(self, constants: Constants) -> dict[str, Any]:
        """Return the option that replaces the constants that ship."""
        return {"window_constants": constants}

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Measures:
        """Return the share of needs that were not resident in each regime, and the rest over all regimes."""
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
            **excess(results),
        }

    def loss(self, found: Measures, start: Measures) -> float:
        """Return what is missing relative to the start, averaged over the regimes, plus penalties."""
        missing = [key for key in found if key.startswith("non_resident")]
        return (
            sum(found[key] / max(start[key], 1e-9) for key in missing) / len(missing)
            + 20.0 * max(0.0, start["line_step"] - found["line_step"])
            + 5.0 * max(0.0, found["bill"] - start["bill"] - _SPARE_BILL)
        )

    def file(self, constants: Constants, made: str) -> bytes:
        """Return the file of the window with these constants in it."""
        provenance = {**window_file().provenance, "fit": made}
        return readable_json(WindowFile(provenance, msgspec.convert(constants, WindowConstants)))
