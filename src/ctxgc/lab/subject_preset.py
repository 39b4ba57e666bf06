"""The constants of a preset, which prunes for the price: a low bill that keeps what the preset promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.core.readable import readable_json
from ctxgc.lab.result import RunResult
from ctxgc.lab.subject import Constants, Number, Reached, share
from ctxgc.thrift.presets import Coefficients, Preset, Shares, coefficients, preset

_PARTS = Shares.__struct_fields__
_NEVER = 1_000_000


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset must keep, as shares, with a margin for runs that were not seen."""

    strict: float = 0.9715
    clean: float = 0.9903
    line_step: float
    word: float
    worst: float = 1.045

    def missed(self, found: Reached) -> float:
        """Return a price for every point that is missing."""
        return (
            2.0 * max(0.0, self.strict - found["strict"])
            + 4.0 * max(0.0, self.clean - found["clean"])
            + 1.5 * max(0.0, self.line_step - found["line_step"])
            + 1.0 * max(0.0, self.word - found["word"])
            + 1.0 * max(0.0, found["worst"] - self.worst)
        )


GOALS: Mapping[str, Goal] = {
    "default": Goal(line_step=0.9430, word=0.8950),
    "lean": Goal(line_step=0.9230, word=0.0),
    "careful": Goal(line_step=0.9630, word=0.9240),
}

_OFF: Mapping[str, Number] = {
    "hold": 1,
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
    "company": 1.0,
    "copy_lines": _NEVER,
    "copy_chars": 0,
    "copy_saving": 0.0,
}


class PresetSubject(msgspec.Struct, frozen=True):
    """One preset, played with room enough."""

    name: str

    @property
    def regimes(self) -> tuple[str, ...]:
        """Pruning is for money only."""
        return ("cost",)

    @property
    def fixed(self) -> frozenset[str]:
        """Promises, and what a reader of the view must be able to follow."""
        return frozenset({"guard", "trims_calls", "copy_lines", "copy_chars", "least_saving"})

    @property
    def off(self) -> Mapping[str, Number]:
        """No share, no hold, no guard, and so on; calls the other way."""
        start = self.start()
        return {
            **dict.fromkeys(_shares(start), 0.0),
            **_OFF,
            "trims_calls": not start["trims_calls"],
        }

    @property
    def together(self) -> Mapping[str, Sequence[str]]:
        """The names of all kinds of results, which differ little."""
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
        """Shares end at 1; a count has no end."""
        return 1.0 if "." in constant else float(_NEVER)

    def options(self, constants: Constants) -> dict[str, Any]:
        """Return the option that puts constants in the place of the preset's."""
        return {"constants": msgspec.to_builtins(_preset(constants))}

    def reached(self, played: Sequence[Sequence[RunResult]]) -> Reached:
        """Return the bill, and what was kept."""
        results = [result for each in played for result in each]
        return {
            "bill": share(results, "bill", "unpruned"),
            "strict": share(results, "strict", "steps"),
            "clean": share(results, "clean", "steps"),
            "line_step": share(results, "line_steps_kept", "line_steps"),
            "word": share(results, "words_kept", "words"),
            "worst": max((result.ratio for result in results), default=1.0),
        }

    def loss(self, found: Reached, start: Reached) -> float:  # noqa: ARG002 - the goal is set
        """Return the bill, and a price for what the preset promised and did not keep."""
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
