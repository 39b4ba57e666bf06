"""Mark: find all that the roots reach.

The walk keeps its own stack, so a chain of a million segments needs no recursion, and it visits every
segment, every explicit link and every shared key once: the cost is linear in what is linked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal

import msgspec

from ctxgc.core.links import (
    KEY_KINDS,
    NOBODY,
    WHOLE,
    WHOLE_FILE,
    Group,
    Key,
    KeyKind,
    bond_of,
    cards,
    ids,
    is_outlived,
    keys_of,
    members,
    share_a_card,
)
from ctxgc.core.roots import GCState, root_reasons
from ctxgc.core.segment import ContextSegment

# -- Ancestry: what holds one segment, found backwards with bounded work


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
    """Return whether a root reaches a segment, following no more than `budget` links.

    It is taken as it is given, whatever the heap says of it: a copy that is not superseded tells whether
    a root would reach it otherwise.
    """
    kinds = frozenset(strong)
    leads_to: dict[str, str | None] = {segment.segment_id: None}
    stack = [segment.segment_id]
    looks = 0
    while stack:
        name = stack.pop()
        at = segment if name == segment.segment_id else state.heap.get(name)
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
    if bond is not None and not is_outlived(segment):
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


def mark_all(heap: Heap, roots: Iterable[str], strong: Iterable[KeyKind] = KEY_KINDS) -> Marks:
    """Return what the roots reach over explicit links and the strong kinds of shared keys.

    A bond is reached as a whole, but for superseded results. A superseded segment is not reached through a
    shared key, since the newer one holds its place there; an explicit link still reaches it.
    """
    return Marks(_Walk(heap, frozenset(strong), young_only=False).run(roots))


def mark_young(heap: Heap, roots: Iterable[str], strong: Iterable[KeyKind] = KEY_KINDS) -> Marks:
    """Return which young segments are reachable when every old one counts as live.

    The old ones are not walked: the heap remembers which young segments they refer to.
    """
    kinds = frozenset(strong)
    # Sorted, so that the ways it finds are the same in every process.
    held = (*roots, *sorted(heap.links.remembered), *_shared_with_old(heap, kinds))
    young = [segment_id for segment_id in held if segment_id in heap.index.young]
    return Marks(_Walk(heap, kinds, young_only=True).run(young))


def _shared_with_old(heap: Heap, strong: frozenset[KeyKind]) -> Iterator[str]:
    """Yield the young segments that share a bond or a strong key with an old one."""
    answers: dict[Key, bool] = {}
    bound = _bonds_with_old(heap)
    for segment_id in heap.index.young:
        segment = heap.get(segment_id)
        if bond_of(segment) in bound and not is_outlived(segment):
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
    return {
        b for b in bonds if b is not None and any(s.generation == "old" for s in members(groups[b]))
    }


def _has_old(heap: Heap, key: Key, answers: dict[Key, bool]) -> bool:
    if key not in answers:
        index = heap.keys
        answers[key] = any(index.old.of(linked) for linked in index.reaches(key))
    return answers[key]


class _Walk:
    """One traversal: what was reached and from where, what was opened, what is still to follow."""

    __slots__ = (
        "came_from", "cards", "files", "find", "heap", "names", "sides", "stack", "strong", "young_only",
    )  # fmt: skip

    def __init__(self, heap: Heap, strong: frozenset[KeyKind], *, young_only: bool) -> None:
        self.heap = heap
        self.find = heap.segments.get
        self.strong = strong
        self.young_only = young_only
        self.sides = (heap.keys.young,) if young_only else (heap.keys.old, heap.keys.young)
        self.came_from: dict[str, str | None] = {}
        self.names: dict[KeyKind, set[str]] = {"tag": set(), "topic": set()}
        self.files: set[str] = set()
        self.cards: set[tuple[str, int]] = set()
        self.stack: list[ContextSegment] = []

    def run(self, roots: Iterable[str]) -> dict[str, str | None]:
        self._follow(roots, None)
        stack, references, groups = self.stack, self.heap.references, self.heap.bonds.groups
        bound: set[str] = set()
        while stack:
            segment = stack.pop()
            segment_id = segment.segment_id
            if (
                segment.references
                or segment.tags
                or segment.reply_to is not None
                or segment.derived_from is not None
            ) and segment_id in references:
                # Sorted, so that the ways it finds are the same in every process.
                self._follow(sorted(references[segment_id]), segment_id)
            bond = segment.call_id if segment.bond_id is None else segment.bond_id
            if bond is not None and bond not in bound:
                bound.add(bond)
                self._bind(groups[bond], segment_id)
            if segment.topic_id is not None or segment.tags:
                self._open_names(segment)
            path = segment.file_path
            if path is not None and path not in self.files and "path" in self.strong:
                self._open_file(path, segment)
        return self.came_from

    def _open_names(self, segment: ContextSegment) -> None:
        """Reach those that share a topic or a tag with a segment."""
        if segment.topic_id is not None:
            self._open_name("topic", segment.topic_id, segment.segment_id)
        for tag in segment.tags:
            self._open_name("tag", tag, segment.segment_id)

    def _open_name(self, kind: KeyKind, name: str, origin: str) -> None:
        if kind in self.strong and name not in self.names[kind]:
            self.names[kind].add(name)
            for side in self.sides:
                self._share(members(side.names[kind].get(name, NOBODY)), origin)

    def _open_file(self, path: str, segment: ContextSegment) -> None:
        """Reach the views of a file that share a card with a segment's view."""
        held, origin, reached = cards(segment.line_range), segment.segment_id, self.came_from
        filed: list[dict[int, Group]] = []
        for side in self.sides:
            views = side.files.get(path, NOBODY)
            if isinstance(views, dict):
                filed.append(views)
            else:
                new = [view for view in views if view.segment_id not in reached]
                if new:
                    self._share([v for v in new if share_a_card(held, cards(v.line_range))], origin)
        if filed:
            self._open_cards(path, filed, held, origin)
        if held == WHOLE_FILE:
            self.files.add(path)

    def _open_cards(
        self, path: str, filed: list[dict[int, Group]], held: Sequence[int], origin: str
    ) -> None:
        """Reach the views that are filed under these cards, each card once, or all of the file."""
        wanted = {card for side in filed for card in side} if held == WHOLE_FILE else (*held, WHOLE)
        for card in sorted(wanted):
            if (path, card) not in self.cards:
                self.cards.add((path, card))
                for side in filed:
                    if card in side:
                        self._share(members(side[card]), origin)

    def _bind(self, bond: Group, origin: str) -> None:
        """Reach the members of a bond but those that are outlived; all are in the working tier."""
        came_from, push, young_only = self.came_from, self.stack.append, self.young_only
        for segment in members(bond):
            segment_id = segment.segment_id
            if segment_id in came_from or (young_only and segment.generation == "old"):
                continue
            if is_outlived(segment):
                continue
            came_from[segment_id] = origin
            push(segment)

    def _share(self, holders: Iterable[ContextSegment], origin: str) -> None:
        """Reach the holders of a key, but for those whose place a newer one has taken."""
        came_from, push = self.came_from, self.stack.append
        for segment in holders:
            segment_id = segment.segment_id
            if segment_id not in came_from and segment.superseded_by is None:
                came_from[segment_id] = origin
                push(segment)

    def _follow(self, ids: Iterable[str], origin: str | None) -> None:
        """Reach what is named, as far as it is in the working tier and within the scope."""
        came_from, find, push = self.came_from, self.find, self.stack.append
        young_only = self.young_only
        for segment_id in ids:
            if segment_id not in came_from:
                segment = find(segment_id)
                if segment is None or segment.tier != "working":
                    continue
                if young_only and segment.generation == "old":
                    continue
                came_from[segment_id] = origin
                push(segment)
