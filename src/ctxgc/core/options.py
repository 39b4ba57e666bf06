"""EngineOptions: how the engine decides; and the scopes of its collections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, get_args

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core.links import KEY_KINDS, KeyKind
from ctxgc.core.roots import RootKnobs
from ctxgc.core.segment import ContextSegment, Policy
from ctxgc.core.tombstone import RECALL_CALL
from ctxgc.errors import ConfigError, InputError

# -- Generations and scopes


if TYPE_CHECKING:
    from ctxgc.core.heap import Heap

Scope = Literal["minor", "major"]
PlanScope = Literal["step", "minor", "major"]
PROMOTE_AFTER = 3


def checked_scope(scope: Scope) -> Scope:
    """Return a scope that a collection can have.

    Raises:
        InputError: there is no such scope.
    """
    if scope not in get_args(Scope):
        raise InputError(
            f"scope '{scope}' is not known", hint="use one of: minor, major", field="scope"
        )
    return scope


def in_scope(heap: Heap, scope: Scope) -> list[ContextSegment]:
    """Return the working segments that a collection of this scope looks at, in order of arrival."""
    if scope == "major":
        return heap.working()
    ids = {**heap.index.young, **heap.index.touched_old}
    return sorted((heap.get(segment_id) for segment_id in ids), key=lambda s: s.position)


def age(heap: Heap, survivors: Iterable[ContextSegment], promote_after: int) -> list[str]:
    """Count one more survival for each survivor and return those that were tenured by it."""
    known = heap.segments
    survived = [known[segment.segment_id] for segment in survivors]
    heap.survive_all(survived)
    young = [s for s in survived if s.generation == "young"]
    tenured = [s.segment_id for s in young if s.gc_survival_count >= promote_after]
    for segment_id in tenured:
        heap.tenure(segment_id)
    heap.index.touched_old.clear()
    return tenured


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine decides.

    Args:
        profile: the name of the keep_score profile.
        weights: coefficients that replace those of the profile.
        strong: the kinds of shared keys that make their members reachable.
        knobs: how far the root rules reach.
        context_limit: the size of the window; without it a collection takes only garbage.
        soft_limit_percent: above it the incremental step stashes a small batch.
        hard_limit_percent: above it a full collection is due.
        target_percent: where a full collection lands; never above the soft limit.
        step_every: how many updates pass between two incremental steps.
        batch: how many segments one incremental step may move and look at.
        looks: how many links one incremental step may follow for each segment.
        promote_after: how many collections a segment outlives before it is tenured.
        evacuate_min_tokens: reachable outputs of at least this size are evacuated: their live lines stay.
        verbose_tokens: reachable segments of at least this size are proposed for compression ...
        cold_steps: ... when nothing touched them for this many steps.
        can_compress: whether whoever applies the plan has a summarizer.
        compress_ratio: how much of a segment its summary may at most keep.
        delete_policies: unreachable segments of these policies are deleted instead of stashed.
        recall_call: how the model recalls a handle, with `{handle}` in it; None when it cannot.
    """

    profile: str = "default"
    weights: Mapping[str, float] = {}
    strong: tuple[KeyKind, ...] = KEY_KINDS
    knobs: RootKnobs = RootKnobs()
    context_limit: int | None = None
    soft_limit_percent: float = 70.0
    hard_limit_percent: float = 90.0
    target_percent: float = 60.0
    step_every: int = 1
    batch: int = 20
    looks: int = 200
    promote_after: int = PROMOTE_AFTER
    evacuate_min_tokens: int = 400
    verbose_tokens: int = 500
    cold_steps: int = 50
    can_compress: bool = False
    compress_ratio: float = 0.25
    delete_policies: tuple[Policy, ...] = ()
    recall_call: str | None = RECALL_CALL

    def __post_init__(self) -> None:
        target, soft, hard = self.target_percent, self.soft_limit_percent, self.hard_limit_percent
        if not (0 < soft <= hard <= 100 and 0 < target <= hard):
            raise ConfigError(
                "target_percent and soft_limit_percent must be above 0 and at most hard_limit_percent",
                hint="hard_limit_percent is at most 100",
                field="target_percent/soft_limit_percent/hard_limit_percent",
            )
        force_setattr(self, "target_percent", min(target, soft))
        for field in ("step_every", "batch", "looks", "promote_after", "context_limit"):
            value = getattr(self, field)
            if value is not None and value < 1:
                raise ConfigError(f"{field} must be at least 1", field=field)
        if not 0 < self.compress_ratio < 1:
            raise ConfigError("compress_ratio must be between 0 and 1", field="compress_ratio")
        _check_words("strong", self.strong, KEY_KINDS)
        _check_words("delete_policies", self.delete_policies, get_args(Policy))

    def limit(self, percent: float) -> int | None:
        """Return a share of the window in tokens; None without a window."""
        return None if self.context_limit is None else int(self.context_limit * percent / 100)


def _check_words(field: str, given: Iterable[str], known: tuple[str, ...]) -> None:
    for word in given:
        if word not in known:
            near = get_close_matches(word, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"use one of: {', '.join(known)}"
            raise ConfigError(f"{field}: '{word}' is not known", hint=hint, field=field)
