"""Where pruning lands: tokens, a share of the window, or a share of what is there."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ctxgc.errors import InputError

PRESETS: Mapping[str, int] = {"gentle": 75, "balanced": 50, "tight": 25}
"""Names for shares of what is there, in percent."""

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*(k|m|%)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A wish: exactly one of the three is set."""

    tokens: int | None = None
    percent_of_window: float | None = None
    percent_of_present: float | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        """Return the target that a text means: `80k`, `120000`, or `50%` of the window.

        Raises:
            InputError: it means none.
        """
        match = _NUMBER.fullmatch(text.strip())
        if match is None:
            raise _no_target(text)
        number, unit = float(re.sub("[_,]", "", match[1])), (match[2] or "").lower()
        if unit != "%":
            return cls(tokens=int(number * _UNITS[unit]))
        if not 0 < number <= 100:
            raise _no_target(text)
        return cls(percent_of_window=number)

    @classmethod
    def preset(cls, name: str) -> Target:
        """Return the target of a preset.

        Raises:
            InputError: there is none of this name.
        """
        if name not in PRESETS:
            raise InputError(
                f"there is no preset {name!r}", hint=f"use {', '.join(PRESETS)}", field="preset"
            )
        return cls(percent_of_present=PRESETS[name])

    def resolve(self, present: int, context_limit: int, beside: int = 0) -> int:
        """Return the tokens to land at; `beside` are those of a request that no pruning reaches."""
        if self.tokens is not None:
            return self.tokens
        if self.percent_of_window is not None:
            return int(context_limit * self.percent_of_window / 100)
        return beside + int(present * (self.percent_of_present or 100) / 100)


def _no_target(text: str) -> InputError:
    return InputError(
        f"the target cannot be {text!r}",
        hint="give tokens (80k, 120000) or a share of the window (50%)",
        field="target",
    )
