"""Plans: what a collection will do, as data. `PruningCandidate` is one segment of a `PruningPlan`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Literal, get_args

import msgspec

from ctxgc.core.options import PlanScope
from ctxgc.core.segment import ContextSegment, SegmentType
from ctxgc.errors import InputError

Action = Literal["stash", "evacuate", "compress", "delete"]
ACTIONS: tuple[Action, ...] = get_args(Action)
IN_PLACE: tuple[Action, ...] = ("evacuate", "compress")
"""The actions that leave something smaller in the segment's place, so that its bond stays whole."""


class PruningCandidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A segment that may leave, with the reason why.

    `score` is its keep_score; `freed` what its action wins, net of the text that stays in its place;
    `age` its seconds since creation; `bond` the ids that it lives and dies with, itself included.
    """

    segment_id: str
    score: float
    tokens: int
    reason: str
    type: SegmentType
    age: float
    action: Action = "stash"
    reachable: bool = False
    superseded: bool = False
    freed: int = -1
    bond: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise InputError(
                f"action '{self.action}' is not known",
                hint=f"use one of: {', '.join(ACTIONS)}",
                field="action",
            )
        if self.tokens < 0:
            raise InputError(
                f"tokens cannot be {self.tokens}", hint="give zero or more", field="tokens"
            )
        if self.freed < 0:
            msgspec.structs.force_setattr(self, "freed", self.tokens)


def candidate_for(
    segment: ContextSegment,
    now: datetime,
    score: float,
    *,
    reason: str | None = None,
    action: Action = "stash",
    reachable: bool = False,
    superseded: bool = False,
    freed: int = -1,
    bond: tuple[str, ...] = (),
) -> PruningCandidate:
    """Return the candidate for a segment, by default with the reason that its state gives."""
    age = segment.age(now)
    if reason is None:
        reason = reason_for(segment, age, reachable=reachable, score=score)
    return PruningCandidate(
        segment_id=segment.segment_id,
        score=score,
        tokens=segment.tokens or 0,
        reason=reason,
        type=segment.type,
        age=age,
        action=action,
        reachable=reachable,
        superseded=superseded,
        freed=freed,
        bond=bond,
    )


class PruningPlan(msgspec.Struct, frozen=True):
    """What a collection will do; nothing has changed yet.

    `candidates` are the segments that leave: superseded garbage, other garbage, then the reachable,
    each by keep_score, lowest first. `proposals` are reachable, long and cold: worth compressing, but
    not part of the plan. `stubs` holds the texts that stay in the place of what is evacuated, or of
    what no summary was found for. `shortfall` is what is missing to the target, zero when it is met.
    """

    candidates: list[PruningCandidate]
    total_tokens_freed: int
    stash_segments: list[str]
    delete_segments: list[str]
    reason: str
    evacuate_segments: list[str] = []
    compress_segments: list[str] = []
    proposals: list[PruningCandidate] = []
    target_tokens: int | None = None
    shortfall: int = 0
    scope: PlanScope = "major"
    tokens_before: int = 0
    heap_version: int | None = None
    stubs: dict[str, str] = {}

    @property
    def tokens_after(self) -> int:
        """What the working tier will hold once the plan is applied."""
        return self.tokens_before - self.total_tokens_freed

    def __len__(self) -> int:
        return len(self.candidates)


def checked_target(target_tokens: int, field: str = "target_tokens") -> int:
    """Return a number of tokens that a plan can aim at.

    Raises:
        InputError: it is below zero or no whole number.
    """
    target: object = target_tokens
    if not isinstance(target, int) or isinstance(target, bool) or target < 0:
        raise InputError(
            f"{field} cannot be {target_tokens!r}",
            hint="give a whole number, zero or more",
            field=field,
        )
    return target


def assemble(
    chosen: list[PruningCandidate],
    *,
    target_tokens: int | None,
    why: str = "",
    proposals: list[PruningCandidate] | None = None,
    scope: PlanScope = "major",
    tokens_before: int = 0,
    heap_version: int | None = None,
    stubs: Mapping[str, str] | None = None,
) -> PruningPlan:
    """Return the plan that does what the chosen candidates propose."""
    freed = sum([candidate.freed for candidate in chosen])
    short = max(0, (target_tokens or 0) - freed)
    groups: dict[Action, list[str]] = {action: [] for action in ACTIONS}
    for candidate in chosen:
        groups[candidate.action].append(candidate.segment_id)
    return PruningPlan(
        candidates=chosen,
        total_tokens_freed=freed,
        stash_segments=groups["stash"],
        delete_segments=groups["delete"],
        evacuate_segments=groups["evacuate"],
        compress_segments=groups["compress"],
        reason=why or _summary(chosen, freed, target_tokens, short),
        proposals=proposals or [],
        target_tokens=target_tokens,
        shortfall=short,
        scope=scope,
        tokens_before=tokens_before,
        heap_version=heap_version,
        stubs=dict(stubs or {}),
    )


def _summary(
    chosen: list[PruningCandidate], freed: int, target_tokens: int | None, short: int
) -> str:
    garbage = sum([not candidate.reachable for candidate in chosen])
    parts = [f"{len(chosen)} segments leave and free {freed} tokens"]
    parts.append(f"{garbage} unreachable, {len(chosen) - garbage} reachable with low scores")
    if target_tokens is not None:
        parts.append(f"target {target_tokens}" + (f", {short} tokens short" if short else " met"))
    return "; ".join(parts)


def reason_for(segment: ContextSegment, age: float, *, reachable: bool, score: float) -> str:
    """Return why a segment of this age may leave, in words that a person understands."""
    verdict = f"reachable, but its score is low ({score:.2f})" if reachable else "unreachable"
    facts = _facts(verdict, segment.type, *_in_largest_unit(age), segment.refcount)
    if segment.superseded_by is None:
        return facts
    how = _HOW.get(segment.superseded_how or "", "superseded")
    return f"{facts}, {how} by {segment.superseded_by}"


@lru_cache(maxsize=4096)
def _facts(verdict: str, kind: str, age: int, unit: str, refs: int) -> str:
    """Return what many segments share: to look it up takes a fraction of the time of writing it."""
    seen = "never referenced" if not refs else f"referenced {refs} time{'s' if refs > 1 else ''}"
    return intern(f"{verdict}; {kind}, {age} {unit} old, {seen}")


_HOW = {
    "re-read": "superseded (read again)",
    "edited": "superseded (file edited)",
    "re-run": "superseded (run again)",
    "identical": "superseded (same text)",
    "resolved": "superseded (error resolved)",
}


def age_text(seconds: float) -> str:
    """Return a time span in its largest whole unit: `40 s`, `3 h`, `2 d`."""
    number, unit = _in_largest_unit(seconds)
    return f"{number} {unit}"


def _in_largest_unit(seconds: float) -> tuple[int, str]:
    if seconds >= 86_400:
        return int(seconds // 86_400), "d"
    if seconds >= 3600:
        return int(seconds // 3600), "h"
    return (int(seconds // 60), "min") if seconds >= 60 else (max(0, int(seconds)), "s")
