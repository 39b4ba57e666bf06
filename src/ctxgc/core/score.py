"""keep_score: how much a segment is worth keeping. Higher stays longer, in every profile.

A profile gives each segment named terms; the score is their sum. `prune_score` is S1's rising score as
S1 writes it, and profile `s1` is its mirror. A pinned segment scores infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from ctxgc.core.profiles import (
    DEFAULT_WEIGHTS,
    ScoreContext,
    ValuesOf,
    Weights,
    default_values,
    points_values,
    prune_score,
    s0_values,
    s1_values,
)  # fmt: skip
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import ConfigError

__all__ = ["PROFILE_NAMES", "Explanation", "KeepScore", "ScoreContext", "prune_score"]

Terms = tuple[tuple[str, float], ...]


class Explanation(msgspec.Struct, frozen=True):
    """A score and the terms it is the sum of."""

    profile: str
    score: float
    terms: Terms


class _Profile(NamedTuple):
    names: tuple[str, ...]
    values: Callable[[ScoreContext, Weights], ValuesOf]


_PROFILES: dict[str, _Profile] = {
    "s0": _Profile(("recency", "importance", "references", "generation"), s0_values),
    "s1": _Profile(("whole", "recency", "type", "references", "generation"), s1_values),
    "points": _Profile(("recency", "relevance", "type", "references"), points_values),
    "default": _Profile(
        ("recency", "age", "type", "references", "touches", "soft", "tenure", "refetch"),
        default_values,
    ),
}
PROFILE_NAMES: tuple[str, ...] = tuple(_PROFILES)


class KeepScore:
    """A scoring profile by name, with its coefficients.

    Raises:
        ConfigError: the profile or a coefficient is not known.
    """

    def __init__(self, profile: str = "default", weights: Weights | None = None) -> None:
        if profile not in _PROFILES:
            raise _unknown("score_profile", profile, PROFILE_NAMES)
        known = DEFAULT_WEIGHTS[profile]
        for name in weights or {}:
            if name not in known:
                raise _unknown("score_weights", name, tuple(known))
        self.profile = profile
        self.weights: Weights = {**known, **(weights or {})}
        _check_numbers(self.weights)
        self._names, self._values = _PROFILES[profile]

    def __call__(self, segment: ContextSegment, context: ScoreContext) -> float:
        """Return the keep_score of a segment; infinity when it is pinned."""
        return math.inf if segment.pinned else sum(self._values(context, self.weights)(segment))

    def all(self, segments: Iterable[ContextSegment], context: ScoreContext) -> list[float]:
        """Return the keep_score of every segment, in their order."""
        values = self._values(context, self.weights)
        return [math.inf if segment.pinned else sum(values(segment)) for segment in segments]

    def explain(self, segment: ContextSegment, context: ScoreContext) -> Explanation:
        """Return the score of a segment with the terms that make it up."""
        values = self._values(context, self.weights)(segment)
        pinned: Terms = (("pinned", math.inf),) if segment.pinned else ()
        terms = (*pinned, *zip(self._names, values, strict=True))
        return Explanation(self.profile, self(segment, context), terms)


def _check_numbers(weights: Weights) -> None:
    for name, value in weights.items():
        given: object = value
        if not isinstance(given, (int, float)) or not math.isfinite(given):
            raise ConfigError(f"score_weights: '{name}' cannot be {value!r}", field="score_weights")
        if name in ("half_life_steps", "seconds_per_step") and given <= 0:
            raise ConfigError(f"score_weights: '{name}' must be above zero", field="score_weights")


def _unknown(field: str, value: str, known: tuple[str, ...]) -> ConfigError:
    near = get_close_matches(value, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"use one of: {', '.join(known)}"
    return ConfigError(f"{field}: '{value}' is not known", hint=hint, field=field, known=known)
