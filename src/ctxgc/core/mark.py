"""Mark: find all that the roots reach.

The walk keeps its own stack, so a chain of a million segments needs no recursion, and it visits every
segment, every explicit link and every shared key once: the cost is linear in what is linked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from ctxgc.core.bonds import bond_of
from ctxgc.core.keys import KEY_KINDS, Key, KeyKind, keys_of
from ctxgc.core.segment import ContextSegment

if TYPE_CHECKING:
    from ctxgc.core.heap import Heap


class Marks(msgspec.Struct, frozen=True):
    """What a mark reached: for every reached segment the one it was reached from (None for a root)."""

    came_from: Mapping[str, str | None]

    def __contains__(self, segment_id: object) -> bool:
        return segment_id in self.came_from

    def __len__(self) -> int:
        return len(self.came_from)

    def reached(self) -> AbstractSet[str]:
        """Return the ids of all reached segments, the roots among them."""
        return self.came_from.keys()

    def chain(self, segment_id: str) -> tuple[str, ...]:
        """Return the way from a root to a segment, both included; empty when it was not reached."""
        if segment_id not in self.came_from:
            return ()
        path: list[str] = []
        at: str | None = segment_id
        while at is not None:
            path.append(at)
            at = self.came_from[at]
        return tuple(reversed(path))


def reachable(roots: Iterable[str], references: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all ids that the roots reach in a plain reference graph, the roots included."""
    reached: set[str] = set()
    stack = list(roots)
    while stack:
        segment_id = stack.pop()
        if segment_id not in reached:
            reached.add(segment_id)
            stack.extend(references.get(segment_id, ()))
    return reached


def mark(heap: Heap, roots: Iterable[str], strong: Iterable[KeyKind] = KEY_KINDS) -> Marks:
    """Return what the roots reach over explicit links and the strong kinds of shared keys.

    A bond is reached as a whole. A superseded segment is not reached through a shared key, since the
    newer one holds its place there; an explicit link still reaches it.
    """
    return Marks(_Walk(heap, frozenset(strong), young_only=False).run(roots))


def mark_young(heap: Heap, roots: Iterable[str], strong: Iterable[KeyKind] = KEY_KINDS) -> Marks:
    """Return which young segments are reachable when every old one counts as live.

    The old ones are not walked: the heap remembers which young segments they refer to.
    """
    kinds = frozenset(strong)
    held = (*roots, *heap.links.remembered, *_shared_with_old(heap, kinds))
    young = [segment_id for segment_id in held if segment_id in heap.index.young]
    return Marks(_Walk(heap, kinds, young_only=True).run(young))


def _shared_with_old(heap: Heap, strong: frozenset[KeyKind]) -> Iterator[str]:
    """Yield the young segments that share a bond or a strong key with an old one."""
    answers: dict[Key, bool] = {}
    bound = _bonds_with_old(heap)
    for segment_id in heap.index.young:
        segment = heap.get(segment_id)
        if bond_of(segment) in bound:
            yield segment_id
        elif segment.superseded_by is None:
            keys = [key for key in keys_of(segment) if key[0] in strong]
            if any(_has_old(heap, key, answers) for key in keys):
                yield segment_id


def _bonds_with_old(heap: Heap) -> set[str]:
    """Return the bonds of the young that an old segment is part of."""
    young = heap.index.young
    bonds = {bond_of(heap.get(segment_id)) for segment_id in young}
    groups = heap.bonds.groups
    return {b for b in bonds if b is not None and any(m not in young for m in groups[b])}


def _has_old(heap: Heap, key: Key, answers: dict[Key, bool]) -> bool:
    if key not in answers:
        index = heap.keys
        answers[key] = any(linked in index.old for linked in index.reaches(key))
    return answers[key]


class _Walk:
    """One traversal: what was reached and from where, which keys were opened, what is still to follow."""

    __slots__ = ("bound", "came_from", "heap", "opened", "stack", "strong", "swept", "young_only")

    def __init__(self, heap: Heap, strong: frozenset[KeyKind], *, young_only: bool) -> None:
        self.heap = heap
        self.strong = strong
        self.young_only = young_only
        self.came_from: dict[str, str | None] = {}
        self.bound: set[str] = set()
        self.opened: set[Key] = set()
        self.swept: set[Key] = set()
        self.stack: list[ContextSegment] = []

    def run(self, roots: Iterable[str]) -> dict[str, str | None]:
        self._reach(roots, None)
        stack, targets, strong = self.stack, self.heap.references, self.strong
        bonds = self.heap.bonds.groups
        while stack:
            segment = stack.pop()
            segment_id = segment.segment_id
            if segment_id in targets:
                # Sorted, so that the ways it finds are the same in every process.
                self._reach(sorted(targets[segment_id]), segment_id)
            bond = bond_of(segment)
            if bond is not None and bond not in self.bound:
                self.bound.add(bond)
                self._reach(bonds[bond], segment_id)
            if segment.topic_id is not None or segment.tags or segment.file_path is not None:
                for key in keys_of(segment):
                    if key not in self.opened and key[0] in strong:
                        self._open(key, segment_id)
        return self.came_from

    def _open(self, key: Key, origin: str) -> None:
        """Reach the members of every key that this one leads to, each of them once."""
        self.opened.add(key)
        index, swept = self.heap.keys, self.swept
        for linked in index.reaches(key):
            if linked not in swept:
                swept.add(linked)
                if linked in index.old and not self.young_only:
                    self._reach(index.old[linked], origin, shared=True)
                if linked in index.young:
                    self._reach(index.young[linked], origin, shared=True)

    def _reach(self, ids: Iterable[str], origin: str | None, *, shared: bool = False) -> None:
        came_from, peek, push = self.came_from, self.heap.peek, self.stack.append
        young_only = self.young_only
        for segment_id in ids:
            if segment_id in came_from:
                continue
            segment = peek(segment_id)
            if segment is None or segment.tier != "working":
                continue
            if shared and segment.superseded_by is not None:
                continue
            if young_only and segment.generation == "old":
                continue
            came_from[segment_id] = origin
            push(segment)
