"""Generations: what survives collections is tenured, and minor collections leave it alone.

A segment that outlives `promote_after` collections becomes old. Tenured means stable: it is not pruned
sooner for its age. A minor collection looks at the young and at the old that were touched since the
last collection; a major one at everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, get_args

from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError

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
    known = heap.by_id
    survived = [known[segment.segment_id] for segment in survivors]
    heap.survive_all(survived)
    young = [s for s in survived if s.generation == "young"]
    tenured = [s.segment_id for s in young if s.gc_survival_count >= promote_after]
    for segment_id in tenured:
        heap.tenure(segment_id)
    heap.index.touched_old.clear()
    return tenured
