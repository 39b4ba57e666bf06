"""keep_score: how much a segment is worth keeping. Higher stays longer, in every profile.

A profile gives each segment named terms; the score is their sum. `prune_score` is S1's rising score as
S1 writes it, and profile `s1` is its mirror. A pinned segment scores infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from ctxgc.core.segment import ContextSegment, checked_time
from ctxgc.errors import ConfigError

# -- Profiles: S0's formula, S1's, S4's points, and the default


_Weights = Mapping[str, float]
_Values = tuple[float, ...]
_ValuesOf = Callable[[ContextSegment], _Values]


class ScoreContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a score depends on besides the segment itself.

    Without a step, ages that count in steps are taken from the clock instead.
    """

    now: datetime
    step: int | None = None
    current_task_id: str | None = None
    task_dependencies: frozenset[str] = frozenset()
    soft: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        checked_time("now", self.now)


_S0_IMPORTANCE: _Weights = {
    "decision": 1.0, "note": 0.8, "summary": 0.7, "code": 0.6, "message": 0.5, "log": 0.2,
}  # fmt: skip
_S1_TYPE: _Weights = {
    "log": 1.0, "note": 0.8, "code": 0.5, "message": 0.3, "decision": 0.1, "summary": 0.2,
}  # fmt: skip
POINTS_TYPE: _Weights = {
    "system_prompt": 20, "current_task": 20, "acceptance_criteria": 18, "active_code": 15,
    "recent_feedback": 12, "task_history": 8, "examples": 5,
}  # fmt: skip

DEFAULT_WEIGHTS: dict[str, _Weights] = {
    "s0": {"recency": 0.4, "importance": 0.3, "references": 0.2, "generation": 0.1},
    "s1": {"recency": 0.4, "type": 0.3, "references": 0.2, "generation": 0.1},
    "points": {"recency": 1.0, "relevance": 1.0, "type": 1.0, "references": 1.0},
    "default": {
        # Type outweighs recency and age together: a decision of last week outlives a log of today.
        "recency": 0.22, "age": 0.03, "half_life_steps": 40.0, "seconds_per_step": 30.0,
        "type": 0.35, "references": 0.13, "touches": 0.09, "soft": 0.09, "tenure": 0.05,
        "refetch": 0.04,
    },
}  # fmt: skip

# What it costs to get a segment's content again, between 0 (read the file) and 1 (impossible).
_REFETCH_COST: Mapping[str | None, float] = {"read": 0.1, "run": 0.4, "edit": 0.8, None: 1.0}


def _s0_values(context: ScoreContext, weights: _Weights) -> _ValuesOf:
    """S0 5.2: recency, importance by type, references up to five, a bonus for the young."""

    def values(segment: ContextSegment) -> _Values:
        seconds = max(0.0, (context.now - segment.last_touched_at).total_seconds())
        return (
            weights["recency"] / (1.0 + seconds),
            weights["importance"] * _S0_IMPORTANCE.get(segment.type, 0.4),
            weights["references"] * min(segment.refcount / 5.0, 1.0),
            weights["generation"] * (0.1 if segment.generation == "young" else 0.0),
        )

    return values


def prune_score(
    segment: ContextSegment, now: datetime, weights: _Weights = DEFAULT_WEIGHTS["s1"]
) -> float:
    """S1's score as S1 writes it: higher means pruned sooner; recency grows without bound."""
    return sum(_prune_values(segment, now, weights))


def _prune_values(segment: ContextSegment, now: datetime, weights: _Weights) -> _Values:
    age_hours = (now - segment.last_touched_at).total_seconds() / 3600
    return (
        weights["recency"] * (age_hours / 24.0),
        weights["type"] * _S1_TYPE.get(segment.type, 0.5),
        weights["references"] * (1.0 / (segment.refcount + 1)),
        weights["generation"] * (1.0 if segment.generation == "old" else 0.3),
    )


def _s1_values(context: ScoreContext, weights: _Weights) -> _ValuesOf:
    """The mirror of `prune_score`: one minus it, so that the order is reversed."""

    def values(segment: ContextSegment) -> _Values:
        return (1.0, *(-value for value in _prune_values(segment, context.now, weights)))

    return values


def _points_values(context: ScoreContext, weights: _Weights) -> _ValuesOf:
    """S4's points, 0 to 100: recency 30, relevance to the task 40, kind of content 20, references 10."""

    def values(segment: ContextSegment) -> _Values:
        kind = max((POINTS_TYPE.get(name, 0) for name in _kinds(segment)), default=0)
        return (
            weights["recency"] * _recency_points(segment, context.now),
            weights["relevance"] * _relevance_points(segment, context),
            weights["type"] * kind,
            weights["references"] * min(10, segment.refcount * 2),
        )

    return values


def _recency_points(segment: ContextSegment, now: datetime) -> int:
    minutes = (now - segment.last_touched_at).total_seconds() / 60
    for limit, points in ((5, 30), (30, 20), (120, 10)):
        if minutes < limit:
            return points
    return 0


def _relevance_points(segment: ContextSegment, context: ScoreContext) -> int:
    if segment.task_id is None:
        return 0
    if segment.task_id == context.current_task_id:
        return 40
    return 25 if segment.task_id in context.task_dependencies else 0


def _kinds(segment: ContextSegment) -> tuple[str, ...]:
    """S4's kinds of content, taken from the tags and, for system text, from the role."""
    if segment.role == "system" or segment.source == "system":
        return ("system_prompt", *segment.tags)
    return segment.tags


def _default_values(context: ScoreContext, weights: _Weights) -> _ValuesOf:
    """Bounded recency and age in steps, type, references, touches, soft links, tenure, refetch cost."""
    ages, step, soft = _ages_by_clock(context, weights), context.step, context.soft
    recency, age, half_life = weights["recency"], weights["age"], weights["half_life_steps"]
    references, touches, mentions = weights["references"], weights["touches"], weights["soft"]
    tenure = weights["tenure"]
    by_type = {kind: weights["type"] * worth for kind, worth in _S0_IMPORTANCE.items()}
    by_access = {access: weights["refetch"] * cost for access, cost in _REFETCH_COST.items()}

    def values(segment: ContextSegment) -> _Values:
        if step is None:
            idle, since_creation = ages(segment)
        else:
            idle, since_creation = step - segment.last_touched_step, step - segment.created_step
        fresh = 0.5 ** (idle / half_life) if idle > 0 else 1.0
        young = fresh
        if since_creation != idle:
            young = 0.5 ** (since_creation / half_life) if since_creation > 0 else 1.0
        refs, touched = segment.refcount, segment.touches
        return (
            recency * fresh,
            age * young,
            by_type[segment.type],
            references * (refs / 5.0 if refs < 5 else 1.0),
            touches * (touched / 5.0 if touched < 5 else 1.0),
            mentions * soft.get(segment.segment_id, 0.0),
            tenure if segment.generation == "old" else 0.0,
            by_access[segment.access],
        )

    return values


def _ages_by_clock(
    context: ScoreContext, weights: _Weights
) -> Callable[[ContextSegment], tuple[float, float]]:
    """Return what gives the time since a segment's last touch and since its creation, in steps."""
    now, pace = context.now, weights["seconds_per_step"]
    return lambda s: (
        (now - s.last_touched_at).total_seconds() / pace,
        s.age(now) / pace,
    )


__all__ = ["PROFILE_NAMES", "Explanation", "KeepScore", "ScoreContext", "prune_score"]

_Terms = tuple[tuple[str, float], ...]


class Explanation(msgspec.Struct, frozen=True):
    """A score and the terms it is the sum of."""

    profile: str
    score: float
    terms: _Terms


class _Profile(NamedTuple):
    names: tuple[str, ...]
    values: Callable[[ScoreContext, _Weights], _ValuesOf]


_PROFILES: dict[str, _Profile] = {
    "s0": _Profile(("recency", "importance", "references", "generation"), _s0_values),
    "s1": _Profile(("whole", "recency", "type", "references", "generation"), _s1_values),
    "points": _Profile(("recency", "relevance", "type", "references"), _points_values),
    "default": _Profile(
        ("recency", "age", "type", "references", "touches", "soft", "tenure", "refetch"),
        _default_values,
    ),
}
PROFILE_NAMES: tuple[str, ...] = tuple(_PROFILES)


class KeepScore:
    """A scoring profile by name, with its coefficients.

    Raises:
        ConfigError: the profile or a coefficient is not known.
    """

    def __init__(self, profile: str = "default", weights: _Weights | None = None) -> None:
        if profile not in _PROFILES:
            raise _unknown("score_profile", profile, PROFILE_NAMES)
        known = DEFAULT_WEIGHTS[profile]
        for name in weights or {}:
            if name not in known:
                raise _unknown("score_weights", name, tuple(known))
        self.profile = profile
        self.weights: _Weights = {**known, **(weights or {})}
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
        pinned: _Terms = (("pinned", math.inf),) if segment.pinned else ()
        terms = (*pinned, *zip(self._names, values, strict=True))
        return Explanation(self.profile, self(segment, context), terms)


def _check_numbers(weights: _Weights) -> None:
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
