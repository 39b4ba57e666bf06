"""Ancestry: who holds one segment, found backwards from it and with bounded work.

A full mark answers for the whole heap. The incremental step asks about a handful of segments, so it
walks the links the other way, from the segment to whoever reaches it, until it meets a root. The
answer is exact, or "unknown" when the budget of looks is used up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from ctxgc.core.bonds import bond_of
from ctxgc.core.groups import ids
from ctxgc.core.keys import KEY_KINDS, KeyKind, keys_of
from ctxgc.core.roots import GCState, root_reasons
from ctxgc.core.segment import ContextSegment

if TYPE_CHECKING:
    from ctxgc.core.heap import Heap


class Ancestry(msgspec.Struct, frozen=True):
    """Whether a root holds a segment, and over which way; `looks` counts the links followed."""

    verdict: Literal["held", "free", "unknown"]
    chain: tuple[str, ...]
    looks: int


def ancestry(
    state: GCState,
    segment: ContextSegment,
    budget: int = 200,
    strong: Iterable[KeyKind] = KEY_KINDS,
) -> Ancestry:
    """Return whether a root reaches a segment, following no more than `budget` links."""
    kinds = frozenset(strong)
    leads_to: dict[str, str | None] = {segment.segment_id: None}
    stack = [segment.segment_id]
    looks = 0
    while stack:
        at = state.heap.get(stack.pop())
        if root_reasons(state, at):
            return Ancestry("held", tuple(_way(leads_to, at.segment_id)), looks)
        for holder in _holders(state.heap, at, kinds):
            looks += 1
            if looks > budget:
                return Ancestry("unknown", (), looks)
            if holder not in leads_to:
                leads_to[holder] = at.segment_id
                stack.append(holder)
    return Ancestry("free", (), looks)


def _holders(heap: Heap, segment: ContextSegment, kinds: frozenset[KeyKind]) -> Iterator[str]:
    """Yield the working segments with a link to this one; one may come more than once."""
    for source in heap.links.sources(segment.segment_id):
        if heap.get(source).tier == "working":
            yield source
    bond = bond_of(segment)
    if bond is not None:
        yield from ids(heap.bonds.groups[bond])
    if segment.superseded_by is not None:
        return
    for key in keys_of(segment):
        if key[0] in kinds:
            for linked in heap.keys.reaches(key):
                yield from heap.keys.members(linked).all()


def _way(leads_to: dict[str, str | None], root: str) -> Iterator[str]:
    at: str | None = root
    while at is not None:
        yield at
        at = leads_to[at]
