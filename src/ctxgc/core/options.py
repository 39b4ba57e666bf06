"""The knobs of the engine, in one place."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ctxgc.core.generations import PROMOTE_AFTER
from ctxgc.core.keys import KEY_KINDS, KeyKind
from ctxgc.core.roots import RootKnobs
from ctxgc.core.segment import Policy
from ctxgc.errors import ConfigError


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine decides.

    Args:
        profile: the name of the keep_score profile.
        weights: coefficients that replace those of the profile.
        strong: the kinds of shared keys that make their members reachable.
        knobs: how far the root rules reach.
        context_limit: the size of the window; without it a collection takes only garbage.
        soft_percent: above it the incremental step stashes a small batch.
        hard_percent: above it a full collection is due.
        target_percent: where a full collection lands.
        batch: how many segments one incremental step may move and look at.
        looks: how many links one incremental step may follow for each segment.
        promote_after: how many collections a segment outlives before it is tenured.
        evacuate_min_tokens: reachable outputs of at least this size leave their live lines behind.
        verbose_tokens: reachable segments of at least this size are proposed for compression ...
        cold_steps: ... when nothing touched them for this many steps.
        can_compress: whether whoever applies the plan has a summarizer.
        compress_ratio: how much of a segment its summary may at most keep.
        delete_policies: unreachable segments of these policies are deleted instead of stashed.
    """

    profile: str = "default"
    weights: Mapping[str, float] = {}
    strong: tuple[KeyKind, ...] = KEY_KINDS
    knobs: RootKnobs = RootKnobs()
    context_limit: int | None = None
    soft_percent: float = 70.0
    hard_percent: float = 90.0
    target_percent: float = 60.0
    batch: int = 20
    looks: int = 200
    promote_after: int = PROMOTE_AFTER
    evacuate_min_tokens: int = 400
    verbose_tokens: int = 500
    cold_steps: int = 50
    can_compress: bool = False
    compress_ratio: float = 0.25
    delete_policies: tuple[Policy, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.target_percent <= self.soft_percent <= self.hard_percent <= 100:
            raise ConfigError(
                "target_percent, soft_percent and hard_percent must rise in this order up to 100",
                field="target_percent/soft_percent/hard_percent",
            )
        for field in ("batch", "looks", "promote_after"):
            if getattr(self, field) < 1:
                raise ConfigError(f"{field} must be at least 1", field=field)

    def limit(self, percent: float) -> int | None:
        """Return a share of the window in tokens; None without a window."""
        return None if self.context_limit is None else int(self.context_limit * percent / 100)
