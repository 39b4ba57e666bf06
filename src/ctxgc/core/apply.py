"""Apply: execute a plan on a heap, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ctxgc.core.generations import age, in_scope
from ctxgc.core.heap import Heap
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningPlan
from ctxgc.core.recent import message_key
from ctxgc.core.segment import ContextSegment, SegmentType
from ctxgc.errors import StalePlanError, UnknownSegmentError

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
    """Execute a plan and age the survivors.

    Raises:
        StalePlanError: the heap has changed since the plan was made, or the plan was made without one.
    """
    if plan.heap_version != heap.version:
        raise StalePlanError(
            f"the plan was made at version {plan.heap_version}, the heap is at {heap.version}",
            hint="plan again and apply the new plan",
        )
    before = heap.ledger.working.tokens
    stand_ins = _stand_ins(plan, heap, options, summarize)
    for original, stand_in in stand_ins.items():
        heap.add(stand_in, position=heap.get(original).position)
    stashed = [*plan.stash_segments, *plan.evacuate_segments, *plan.compress_segments]
    for segment_id in stashed:
        heap.stash(segment_id)
    for segment_id in plan.delete_segments:
        heap.remove(segment_id)
    new = {stand_in.segment_id for stand_in in stand_ins.values()}
    survivors = [s for s in in_scope(heap, plan.scope) if s.segment_id not in new]
    return Collection(
        plan=plan,
        tokens_before=before,
        tokens_after=heap.ledger.working.tokens,
        stashed=stashed,
        deleted=plan.delete_segments,
        replaced={original: s.segment_id for original, s in stand_ins.items()},
        tenured=age(heap, survivors, options.promote_after),
    )


def _stand_ins(
    plan: PruningPlan, heap: Heap, options: EngineOptions, summarize: Summarize | None
) -> dict[str, ContextSegment]:
    """Make all stubs and summaries before anything moves, so that a failure changes nothing."""
    for candidate in plan.candidates:
        if candidate.segment_id not in heap:
            raise UnknownSegmentError(f"no segment has the id '{candidate.segment_id}'")
    made = {
        segment_id: _stand_in(heap, heap.get(segment_id), plan.stubs[segment_id], None)
        for segment_id in plan.evacuate_segments
    }
    for segment_id in plan.compress_segments:
        segment = heap.get(segment_id)
        text = summarize(segment) if summarize is not None else None
        # A summary that is missing or too long is left out: its original is stashed whole.
        if text and heap.count(text) <= int((segment.tokens or 0) * options.compress_ratio):
            made[segment_id] = _stand_in(heap, segment, text, "summary")
    return made


def _stand_in(
    heap: Heap, segment: ContextSegment, text: str, kind: SegmentType | None
) -> ContextSegment:
    """A small segment with the place, bonds and keys of the one that leaves."""
    return ContextSegment(
        segment_id=f"{segment.segment_id}.stub{heap.step}",
        text=text,
        type=kind or segment.type,
        role=segment.role,
        created_at=segment.created_at,
        derived_from=segment.segment_id,
        file_path=segment.file_path,
        line_range=segment.line_range,
        tags=segment.tags,
        topic_id=segment.topic_id,
        task_id=segment.task_id,
        project_id=segment.project_id,
        policy=segment.policy,
        source=segment.source,
        message_id=message_key(segment),
        part=segment.part,
        call_id=segment.call_id,
        bond_id=segment.bond_id,
        trust=segment.trust,
        name=segment.name,
    )
