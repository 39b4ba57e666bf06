"""Apply: execute a plan on a heap, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from ctxgc.core.generations import age, in_scope
from ctxgc.core.heap import Heap
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningPlan
from ctxgc.core.recent import is_message, message_key
from ctxgc.core.segment import ContextSegment, SegmentType
from ctxgc.errors import StalePlanError

Summarize = Callable[[ContextSegment], str | None]


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """One applied plan: what it did to the heap.

    `replaced` maps a segment that was evacuated or compressed to the one that stands in its place.
    """

    plan: PruningPlan
    tokens_before: int
    tokens_after: int
    stashed: list[str]
    deleted: list[str]
    replaced: dict[str, str]
    tenured: list[str]

    @property
    def tokens_freed(self) -> int:
        """How much smaller the working tier has become."""
        return self.tokens_before - self.tokens_after


def apply_plan(
    plan: PruningPlan, heap: Heap, options: EngineOptions, summarize: Summarize | None
) -> Collection:
    """Execute a plan and age the survivors; an incremental step ages nobody.

    Raises:
        StalePlanError: the heap has changed since the plan was made, or the plan was made without one.
    """
    _check(plan, heap)
    before = heap.ledger.working.tokens
    # All that can fail comes first, so that a failure changes nothing.
    stand_ins = _stand_ins(plan, heap, options, summarize)
    for original, stand_in in stand_ins.items():
        heap.replace(original, stand_in)
    for segment_id in plan.stash_segments:
        heap.stash(segment_id)
    for segment_id in plan.delete_segments:
        heap.remove(segment_id)
    new = {stand_in.segment_id for stand_in in stand_ins.values()}
    return Collection(
        plan=plan,
        tokens_before=before,
        tokens_after=heap.ledger.working.tokens,
        stashed=[*plan.stash_segments, *stand_ins],
        deleted=plan.delete_segments,
        replaced={original: s.segment_id for original, s in stand_ins.items()},
        tenured=_age(plan, heap, new, options.promote_after),
    )


def _check(plan: PruningPlan, heap: Heap) -> None:
    if plan.heap_version is None:
        raise StalePlanError(
            "the plan was made from a list of candidates and belongs to no heap",
            hint="make it with plan(heap, ...)",
        )
    at_hand = (heap.peek(candidate.segment_id) for candidate in plan.candidates)
    if plan.heap_version != heap.version or any(s is None or s.tier != "working" for s in at_hand):
        raise StalePlanError(
            f"the plan was made at version {plan.heap_version}, the heap is at {heap.version}",
            hint="plan again and apply the new plan",
        )


def _age(plan: PruningPlan, heap: Heap, new: set[str], promote_after: int) -> list[str]:
    if plan.scope == "step":
        return []
    survivors = [s for s in in_scope(heap, plan.scope) if s.segment_id not in new]
    return age(heap, survivors, promote_after)


def _stand_ins(
    plan: PruningPlan, heap: Heap, options: EngineOptions, summarize: Summarize | None
) -> dict[str, ContextSegment]:
    """Return what stands in the place of each segment that is evacuated or compressed."""
    made: dict[str, ContextSegment] = {}
    for segment_id in plan.evacuate_segments:
        made[segment_id] = _stand_in(heap, segment_id, plan.stubs[segment_id], None)
    for segment_id in plan.compress_segments:
        summary = summarize(heap.get(segment_id)) if summarize is not None else None
        room = int((heap.get(segment_id).tokens or 0) * options.compress_ratio)
        if summary and heap.count(summary) <= room:
            made[segment_id] = _stand_in(heap, segment_id, summary, "summary")
        else:
            made[segment_id] = _stand_in(heap, segment_id, plan.stubs[segment_id], None)
    return made


def _stand_in(heap: Heap, segment_id: str, text: str, kind: SegmentType | None) -> ContextSegment:
    """A smaller segment with the age, place, bond and keys of the one that leaves."""
    segment = heap.get(segment_id)
    names = (f"{segment_id}.stub{n}" for n in count(heap.version))
    return ContextSegment(
        segment_id=next(name for name in names if name not in heap),
        text=text,
        type=kind or segment.type,
        tokens=heap.count(text),
        derived_from=segment_id,
        message_id=message_key(segment) if is_message(segment) else None,
        **{field: getattr(segment, field) for field in _INHERITED},
    )


_INHERITED = (
    "role", "created_at", "last_touched_at", "created_step", "last_touched_step", "generation",
    "gc_survival_count", "touches", "references", "reply_to", "file_path", "line_range", "tags",
    "topic_id", "task_id", "project_id", "policy", "source", "part", "call_id", "bond_id", "trust",
    "name",
)  # fmt: skip
