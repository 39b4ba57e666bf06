"""Counting for models whose tokenizer is not public."""

from __future__ import annotations

import math

from ctxgc.errors import InputError
from ctxgc.tokens.cache import CountingCache
from ctxgc.tokens.calibration import Calibration
from ctxgc.tokens.classes import classify, features
from ctxgc.tokens.counter import TokenCounter, require_text
from ctxgc.tokens.exact import ExactCounter
from ctxgc.tokens.pieces import mended, pieces
from ctxgc.tokens.profiles import PROFILES, Profile

_EDGE = 2
"""Tokens that a tokenizer may add at the edges of a text, however short it is."""


class UpperBoundCounter:
    """Counts in o200k and adds what a family of tokenizers takes on top, at most.

    The bound never exceeds the UTF-8 bytes of the text and two: no byte-level tokenizer can take more.
    """

    exact = False

    def __init__(self, profile: str = "unknown", *, base: TokenCounter | None = None) -> None:
        self._profile = _profile(profile)
        self._base = ExactCounter("o200k_base") if base is None else base
        self.name = f"{profile} estimate over {self._base.name}"

    def count(self, text: str) -> int:
        """Return a number of tokens that the true one does not exceed by more than 2%."""
        if not require_text(text):
            return 0
        text = mended(text)
        bound = math.ceil(_EDGE + sum(map(self._bound, pieces(text))))
        return min(bound, len(text.encode()) + _EDGE)

    def _bound(self, piece: str) -> float:
        return self._profile.tokens(self._base.count(piece), classify(piece), features(piece))


class EstimatedCounter:
    """An upper bound at first; closer to the truth once `calibrate` has seen what the provider reports.

    `bound` is the counter to scale; without one it is the upper bound of `profile`, remembered.
    A text that was counted before a calibration is not counted again behind its owner's back: ask again,
    which costs a look-up, when the `scale` has changed.
    """

    exact = False

    def __init__(
        self,
        profile: str = "unknown",
        *,
        bound: TokenCounter | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        # Not `bound or ...`: a cache that holds nothing yet is false.
        self._bound = CountingCache(UpperBoundCounter(profile)) if bound is None else bound
        self.calibration = Calibration() if calibration is None else calibration
        self.name = self._bound.name

    def __repr__(self) -> str:
        return f"<EstimatedCounter {self.name!r} scale={self.scale:.3f}>"

    @property
    def scale(self) -> float:
        """What the upper bound is multiplied by: 1 until calibrated."""
        return self.calibration.scale

    def count(self, text: str) -> int:
        """Return the estimated number of tokens."""
        return math.ceil(self._bound.count(text) * self.scale)

    def calibrate(self, counted_tokens: int, reported_tokens: int) -> bool:
        """Learn from one request; return whether the sample was accepted (see `ctxgc.tokens.calibration`).

        `counted_tokens` is what this counter says, at its present scale, about the texts for which the
        provider reported `reported_tokens`, cached input included.
        """
        return self.calibration.learn(counted_tokens / self.scale, reported_tokens)


def _profile(name: str) -> Profile:
    try:
        return PROFILES[name]
    except (KeyError, TypeError):
        known = ", ".join(PROFILES)
        raise InputError(
            f"profile: {name!r} is not known", hint=f"use one of {known}", field="profile"
        ) from None
