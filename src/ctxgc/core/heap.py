"""The heap: all segments of one session, with links, GC headers and the token ledger.

Every operation leaves the heap whole or, when it raises, as it was. The work of an arrival does not
depend on how many segments the heap holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core.links import Bonds, KeyIndex, Mentions, Supersession
from ctxgc.core.roots import RootIndex
from ctxgc.core.segment import (
    REF_TAG,
    ContextSegment,
    Tier,
    checked_time,
    explicit_references,
    put_away,
    take_out,
)
from ctxgc.errors import DuplicateSegmentError, UnknownSegmentError

# -- The token ledger: how many segments and tokens each tier holds, without looking at them


Dimension = Literal["type", "task", "policy", "source"]
DIMENSIONS: tuple[Dimension, ...] = ("type", "task", "policy", "source")

_Kind = tuple[str, str | None, str, str]
"""What a segment is in each dimension."""


class Amount(msgspec.Struct, frozen=True):
    """A number of segments and their tokens."""

    segments: int = 0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.segments + other.segments, self.tokens + other.tokens)


class Ledger:
    """Running totals per tier, and within a tier per type, task, policy and source."""

    __slots__ = ("_books", "_deleted", "_ingested", "_tiers")

    def __init__(self) -> None:
        self._ingested = [0, 0]
        self._deleted = [0, 0]
        self._tiers: dict[Tier, list[int]] = {"working": [0, 0], "stashed": [0, 0]}
        self._books: dict[tuple[Tier, Dimension, str | None], list[int]] = {}

    def enter(self, segment: ContextSegment) -> None:
        """Count a segment that came in."""
        _post(self._ingested, 1, segment.tokens or 0)
        self._book(segment, segment.tier, 1)

    def restate(self, before: ContextSegment, now: ContextSegment) -> None:
        """Count a segment as what it is said to be now, and no longer as what it was."""
        self._book(before, before.tier, -1)
        self._book(now, now.tier, 1)

    def move(self, segment: ContextSegment, before: Tier) -> None:
        """Count a segment in its present tier and no longer in the one it had before."""
        self._book(segment, before, -1)
        self._book(segment, segment.tier, 1)

    def move_all(self, segments: Iterable[ContextSegment], before: Tier, now: Tier) -> None:
        """Count many segments in a tier and no longer in the one that they had before."""
        sums: dict[_Kind, list[int]] = {}
        for s in segments:
            kind: _Kind = (s.type, s.task_id, s.policy, s.source)
            book = sums.get(kind)
            if book is None:
                book = sums[kind] = [0, 0]
            book[0] += 1
            book[1] += s.tokens or 0
        for kind, (count, tokens) in sums.items():
            self._post_all(before, kind, -count, -tokens)
            self._post_all(now, kind, count, tokens)

    def delete(self, segment: ContextSegment) -> None:
        """Count a segment as gone for good."""
        self._book(segment, segment.tier, -1)
        _post(self._deleted, 1, segment.tokens or 0)

    def restate_deleted(self, amount: Amount) -> None:
        """Carry over deletions that happened before this ledger was opened."""
        for book in (self._ingested, self._deleted):
            _post(book, amount.segments, amount.tokens)

    @property
    def ingested(self) -> Amount:
        """All that ever came in."""
        return Amount(*self._ingested)

    @property
    def working(self) -> Amount:
        """What the working tier holds."""
        return Amount(*self._tiers["working"])

    @property
    def stashed(self) -> Amount:
        """What was moved out and can be recalled."""
        return Amount(*self._tiers["stashed"])

    @property
    def deleted(self) -> Amount:
        """What is gone for good."""
        return Amount(*self._deleted)

    def amount(self, dimension: Dimension, value: str | None, tier: Tier = "working") -> Amount:
        """Return what one type, task, policy or source holds in a tier."""
        return Amount(*self._books.get((tier, dimension, value), (0, 0)))

    def by(self, dimension: Dimension, tier: Tier = "working") -> dict[str | None, Amount]:
        """Return the non-empty amounts of a dimension, by value."""
        return {
            value: Amount(*book)
            for (at, dim, value), book in self._books.items()
            if at == tier and dim == dimension and book[0]
        }

    def balanced(self) -> bool:
        """Return whether ingested equals working plus stashed plus deleted."""
        return self.ingested == self.working + self.stashed + self.deleted

    def _book(self, segment: ContextSegment, tier: Tier, sign: int) -> None:
        kind = (segment.type, segment.task_id, segment.policy, segment.source)
        self._post_all(tier, kind, sign, sign * (segment.tokens or 0))

    def _post_all(self, tier: Tier, kind: _Kind, segments: int, tokens: int) -> None:
        _post(self._tiers[tier], segments, tokens)
        books = self._books
        type_, task, policy, source = kind
        for key in (
            (tier, "type", type_),
            (tier, "task", task),
            (tier, "policy", policy),
            (tier, "source", source),
        ):
            book = books.get(key)
            if book is None:
                book = books[key] = [0, 0]
            book[0] += segments
            book[1] += tokens


def _post(book: list[int], segments: int, tokens: int) -> None:
    book[0] += segments
    book[1] += tokens


# -- Admission, decided before anything changes


_FIELD_OF = {"reference": "references", "reply": "reply_to", "derived-from": "derived_from"}


def rough_tokens(text: str) -> int:
    """Return a quarter of the characters, rounded up: what a heap uses when it is given no counter."""
    return (len(text) + 3) // 4


def admit(batch: list[ContextSegment], known: Mapping[str, ContextSegment]) -> list[ContextSegment]:
    """Return the segments of a batch that are new, each id once.

    Raises:
        DuplicateSegmentError: an id is taken by another text, in the heap or in the batch.
        UnknownSegmentError: a new segment refers to an id that neither the heap nor the batch has.
    """
    new = each_once(batch, known)
    for segment in new.values():
        for target, kind in explicit_references(segment).items():
            if target not in new and target not in known:
                raise _unknown(target, named_by=segment.segment_id, field=_FIELD_OF[kind])
    return list(new.values())


def each_once(
    batch: Iterable[ContextSegment], known: Mapping[str, ContextSegment] = MappingProxyType({})
) -> dict[str, ContextSegment]:
    """Return the segments of a batch that are not known by their id, in order.

    Raises:
        DuplicateSegmentError: an id is taken by another text.
    """
    new: dict[str, ContextSegment] = {}
    for segment in batch:
        twin = known.get(segment.segment_id) or new.get(segment.segment_id)
        if twin is None:
            new[segment.segment_id] = segment
        elif twin.text != segment.text:
            raise _taken(segment.segment_id)
    return new


def _unknown(
    segment_id: str, *, named_by: str = "", field: str = "segment_id"
) -> UnknownSegmentError:
    """Return the error for an id that no segment has."""
    where = f" ('{field}' of segment '{named_by}')" if named_by else ""
    return UnknownSegmentError(
        f"no segment has the id '{segment_id}'{where}",
        hint="add it first, or in the same batch",
        field=field,
        segment_id=segment_id,
    )


def _taken(segment_id: str) -> DuplicateSegmentError:
    """Return the error for an id that belongs to another text."""
    return DuplicateSegmentError(
        f"the id '{segment_id}' belongs to a segment with another text",
        hint="a segment's text never changes: give the new text an id of its own",
        field="segment_id",
        segment_id=segment_id,
    )


# -- Indexes


class HeapIndexes:
    """Shared keys, bonds, root candidates, mentions, supersession; the young, changed and stashed."""

    __slots__ = (
        "bonds",
        "changed",
        "keys",
        "mentions",
        "root_index",
        "stashed",
        "supersession",
        "touched_old",
        "young",
    )

    def __init__(self) -> None:
        self.keys = KeyIndex()
        self.bonds = Bonds()
        self.root_index = RootIndex()
        self.mentions = Mentions()
        self.supersession = Supersession()
        self.stashed: dict[str, ContextSegment] = {}
        self.young: dict[str, None] = {}
        self.touched_old: dict[str, None] = {}
        self.changed: deque[str] = deque()
        """What came in or grew stale since the last incremental step; may name what has left."""

    def enter(self, segment: ContextSegment) -> None:
        """Enter a segment of the working tier everywhere but in mentions and supersession."""
        if segment.generation == "young":
            self.young[segment.segment_id] = None
        self.keys.add(segment)
        self.bonds.add(segment)
        self.root_index.add(segment)

    def leave(self, segment: ContextSegment) -> None:
        """Take a segment out of every index but supersession: what is stashed can grow stale too."""
        self.keys.discard(segment)
        self.bonds.discard(segment)
        self.root_index.discard(segment)
        self.mentions.discard(segment.segment_id, segment.text)
        self.young.pop(segment.segment_id, None)
        self.touched_old.pop(segment.segment_id, None)

    def stash(self, segment: ContextSegment) -> None:
        """Follow that a segment of the working tier was stashed."""
        self.leave(segment)
        self.stashed[segment.segment_id] = segment

    def forget(self, segment: ContextSegment) -> None:
        """Follow that a segment is deleted for good."""
        if self.stashed.pop(segment.segment_id, None) is None:
            self.leave(segment)
        self.mentions.forget(segment.segment_id)
        self.supersession.forget(segment)

    def reopen(self, segment: ContextSegment) -> None:
        """Enter a segment of a former heap, without the effects of an arrival."""
        if segment.tier == "working":
            self.enter(segment)
            self.mentions.add(segment.segment_id, segment.text)
        else:
            self.stashed[segment.segment_id] = segment
        if segment.superseded_by is None:
            self.supersession.arrive(segment)

    def annotate(self, before: ContextSegment, now: ContextSegment) -> None:
        """Follow a change of what is said about a segment."""
        if before.type != now.type:
            self.supersession.retype(before, now)
        if now.tier != "working":
            return
        if (before.tags, before.topic_id) != (now.tags, now.topic_id):
            self.keys.discard(before)
            self.keys.add(now)
        self.root_index.follow(before, now)

    def retire(self, segment: ContextSegment) -> None:
        """Follow that a segment was superseded."""
        self.supersession.forget(segment)
        self.root_index.resolve(segment)
        self.changed.append(segment.segment_id)

    def tenure(self, segment: ContextSegment) -> None:
        """Count a segment among the old."""
        self.young.pop(segment.segment_id, None)
        if segment.tier == "working":
            self.keys.promote(segment)


# -- Explicit links, in both directions


_NONE: frozenset[str] = frozenset()


class Links:
    """The reference graph. Segments without links cost nothing."""

    __slots__ = ("backrefs", "references", "remembered")

    def __init__(self) -> None:
        self.references: dict[str, set[str]] = {}
        self.backrefs: dict[str, set[str]] = {}
        self.remembered: dict[str, int] = {}
        """Young segments that old ones refer to, with the number of such links."""

    def add(self, source: str, target: str) -> bool:
        """Link `source` to `target`; return whether the link is new."""
        out = self.references.get(source)
        if out is None:
            out = self.references[source] = set()
        elif target in out:
            return False
        out.add(target)
        back = self.backrefs.get(target)
        if back is None:
            self.backrefs[target] = {source}
        else:
            back.add(source)
        return True

    def discard(self, source: str, target: str) -> bool:
        """Unlink `source` from `target`; return whether there was a link."""
        out = self.references.get(source)
        if out is None or target not in out:
            return False
        _drop(self.references, source, target)
        _drop(self.backrefs, target, source)
        return True

    def targets(self, source: str) -> Iterable[str]:
        """Return what a segment refers to."""
        return self.references.get(source, _NONE)

    def sources(self, target: str) -> Iterable[str]:
        """Return what refers to a segment."""
        return self.backrefs.get(target, _NONE)

    def refcount(self, target: str) -> int:
        """Return how many segments refer to this one."""
        return len(self.backrefs.get(target, _NONE))

    def remember(self, target: str, links: int) -> None:
        """Count links from old segments to a young one up or down."""
        count = self.remembered.get(target, 0) + links
        if count > 0:
            self.remembered[target] = count
        else:
            self.remembered.pop(target, None)


def _drop(table: dict[str, set[str]], key: str, member: str) -> None:
    members = table[key]
    members.discard(member)
    if not members:
        del table[key]


# -- Headers, which only the heap writes


class _Headers:
    """Segments by their id, with links and indexes, and how their headers change."""

    def __init__(self) -> None:
        self.links = Links()
        self.index = HeapIndexes()
        self.step = 0
        self.version = 0
        self._segments: dict[str, ContextSegment] = {}
        self._relinked: set[str] = set()

    def get(self, segment_id: str) -> ContextSegment:
        """Return a segment with its present header.

        Raises:
            UnknownSegmentError: no segment has this id.
        """
        segment = self._segments.get(segment_id)
        if segment is None:
            raise _unknown(segment_id)
        if segment_id in self._relinked:
            self._write_links(segment)
        return segment

    def is_working(self, segment_id: str) -> bool:
        """Return whether the heap has a segment and it is in the working tier."""
        segment = self.peek(segment_id)
        return segment is not None and segment.tier == "working"

    def peek(self, segment_id: str) -> ContextSegment | None:
        """Return a segment, or None when no segment has this id."""
        return self._segments.get(segment_id)

    @property
    def segments(self) -> Mapping[str, ContextSegment]:
        """All segments by their id, with their present headers; for reading only."""
        for segment_id in tuple(self._relinked):
            self._write_links(self._segments[segment_id])
        return MappingProxyType(self._segments)

    def touch(self, segment_id: str, now: datetime | None = None) -> None:
        """Note that a segment was used at this step, and at this time if one is given."""
        segment = self.get(segment_id)
        self._touch(segment, now if now is None else checked_time("now", now))
        self.version += 1

    def pin(self, segment_id: str) -> None:
        """Protect a segment from every collection."""
        self._set_pinned(self.get(segment_id), pinned=True)

    def unpin(self, segment_id: str) -> None:
        """Take the protection of a pin away."""
        self._set_pinned(self.get(segment_id), pinned=False)

    def protect(self, segment_id: str, until_step: int) -> None:
        """Protect a segment until a step has passed: a pin that decays."""
        segment = self.get(segment_id)
        force_setattr(segment, "protected_until", until_step)
        self.index.root_index.watch(segment)
        self.version += 1

    def open_file(self, path: str) -> None:
        """Note that the user or the host opened or edited a file just now."""
        self.index.root_index.open_file(path)
        self.version += 1

    def survive(self, segment_id: str) -> int:
        """Count one more collection that a segment outlived, and return the new count."""
        segment = self.get(segment_id)
        self.survive_all((segment,))
        return segment.gc_survival_count

    def survive_all(self, segments: Collection[ContextSegment]) -> None:
        """Count one more collection that segments of this heap outlived."""
        for segment in segments:
            force_setattr(segment, "gc_survival_count", segment.gc_survival_count + 1)
        self.version += len(segments)

    def tenure(self, segment_id: str) -> None:
        """Make a young segment old, and remember what it refers to among the young."""
        segment = self.get(segment_id)
        if segment.generation == "old":
            return
        force_setattr(segment, "generation", "old")
        self.index.tenure(segment)
        self.links.remembered.pop(segment_id, None)
        if segment.tier == "working":
            self._remember(segment, 1)
        self.version += 1

    def link(self, source: str, target: str) -> None:
        """Add an explicit link; one that exists stays single."""
        origin, goal = self.get(source), self.get(target)
        if self._link(origin, goal):
            self._relinked.add(source)
            self.version += 1

    def unlink(self, source: str, target: str) -> None:
        """Remove an explicit link, whichever field named it; a missing one changes nothing."""
        origin, goal = self.get(source), self.get(target)
        if self._unlink(origin, goal):
            self._relinked.add(source)
            self.version += 1

    def _link(self, origin: ContextSegment, goal: ContextSegment) -> bool:
        if not self.links.add(origin.segment_id, goal.segment_id):
            return False
        self._follow_link(origin, goal, 1)
        return True

    def _unlink(self, origin: ContextSegment, goal: ContextSegment) -> bool:
        if not self.links.discard(origin.segment_id, goal.segment_id):
            return False
        self._follow_link(origin, goal, -1)
        return True

    def _follow_link(self, origin: ContextSegment, goal: ContextSegment, sign: int) -> None:
        force_setattr(goal, "refcount", self.links.refcount(goal.segment_id))
        if _holds_the_young(origin) and goal.generation == "young":
            self.links.remember(goal.segment_id, sign)

    def _remember(self, origin: ContextSegment, sign: int) -> None:
        """Count the links of an old segment to the young, or count them no longer."""
        if origin.generation != "old":
            return
        for target in self.links.targets(origin.segment_id):
            if self._segments[target].generation == "young":
                self.links.remember(target, sign)

    def _touch(self, segment: ContextSegment, now: datetime | None) -> None:
        force_setattr(segment, "touches", segment.touches + 1)
        force_setattr(segment, "last_touched_step", self.step)
        if now is not None and now > segment.last_touched_at:
            force_setattr(segment, "last_touched_at", now)
        if _holds_the_young(segment):
            self.index.touched_old[segment.segment_id] = None

    def _set_pinned(self, segment: ContextSegment, *, pinned: bool) -> None:
        if segment.pinned != pinned:
            force_setattr(segment, "pinned", pinned)
            self.index.root_index.watch(segment)
            self.version += 1

    def _write_links(self, segment: ContextSegment) -> None:
        """Bring the fields that name links up to date with the links made and cut since."""
        self._relinked.discard(segment.segment_id)
        targets = set(self.links.targets(segment.segment_id))
        for field in ("reply_to", "derived_from"):
            if getattr(segment, field) not in targets:
                force_setattr(segment, field, None)
        tags = [tag for tag in segment.tags if _named(tag) in targets or _named(tag) is None]
        kept = [target for target in segment.references if target in targets]
        named = {*kept, segment.reply_to, segment.derived_from, *map(_named, tags)}
        force_setattr(segment, "tags", tuple(tags))
        force_setattr(segment, "references", (*kept, *sorted(targets - named)))


def _holds_the_young(segment: ContextSegment) -> bool:
    return segment.generation == "old" and segment.tier == "working"


def _named(tag: str) -> str | None:
    return tag.removeprefix(REF_TAG) if tag.startswith(REF_TAG) else None


class Heap(_Headers):
    """The segments of one session.

    Args:
        count: counts the tokens of a text; called once per segment that comes without `tokens`.
    """

    def __init__(self, count: Callable[[str], int] = rough_tokens) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.order: deque[str] = deque()
        """What the incremental step looks at in turn; may still name what has left."""
        self.updates = 0
        self.count = count
        self._next_position = 0
        self._displaced = False

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, segment_id: object) -> bool:
        return segment_id in self._segments

    def __iter__(self) -> Iterator[ContextSegment]:
        return iter(self.segments.values())

    @property
    def references(self) -> dict[str, set[str]]:
        """Explicit links as the heap keeps them: from a segment to those it refers to."""
        return self.links.references

    @property
    def backrefs(self) -> dict[str, set[str]]:
        """The same links the other way round."""
        return self.links.backrefs

    @property
    def keys(self) -> KeyIndex:
        """Which segments hold which file, tag or topic."""
        return self.index.keys

    @property
    def bonds(self) -> Bonds:
        """Which segments live and die together."""
        self.index.bonds.settle()
        return self.index.bonds

    @property
    def mentions(self) -> Mentions:
        """Which segments hold which rare identifier."""
        return self.index.mentions

    @property
    def root_index(self) -> RootIndex:
        """What the root rules ask for."""
        return self.index.root_index

    def working(self) -> list[ContextSegment]:
        """Return the segments of the working tier in order of arrival."""
        segments = [s for s in self._segments.values() if s.tier == "working"]
        if self._displaced:
            segments.sort(key=lambda segment: segment.position)
        return segments

    def add(self, segment: ContextSegment) -> str:
        """Take in one segment and return its id; the same segment again changes nothing.

        The heap keeps a copy of its own.

        Raises:
            DuplicateSegmentError: the id is taken by another text.
            UnknownSegmentError: it refers to an id that the heap does not hold.
        """
        return self.add_all((segment,))[0]

    def add_all(self, segments: Iterable[ContextSegment]) -> list[str]:
        """Take in a batch, whose members may refer to each other; all come in or none."""
        batch = list(segments)
        arrived = [self._own(segment, n) for n, segment in enumerate(admit(batch, self._segments))]
        for segment in arrived:
            self._pass_step(segment)
            self._place(segment)
        for segment in arrived:
            self._link_all(segment)
        for segment in arrived:
            self._arrive(segment)
        return [segment.segment_id for segment in batch]

    def replace(self, segment_id: str, stand_in: ContextSegment) -> None:
        """Stash a segment and put a smaller one in its place and under the links that lead to it.

        This is not an arrival: no step passes, nothing is touched and nothing superseded.
        """
        place = self.get(segment_id).position
        if stand_in.segment_id in self:
            raise _taken(stand_in.segment_id)
        own = self._own(stand_in, 0)
        force_setattr(own, "position", place)
        self._place(own)
        self._link_all(own)
        self.index.mentions.add(own.segment_id, own.text)
        for source in tuple(self.links.sources(segment_id)):
            if source != own.segment_id:
                self.link(source, own.segment_id)
        self.stash(segment_id)

    def annotate(self, segment_id: str, **said: Any) -> None:
        """Change what is said about a segment: its type, tags, topic_id, task_id or policy.

        Raises:
            SegmentError: a field has a value that no segment may have; nothing has changed.
            UnknownSegmentError: no segment has the id, or the one that a tag `ref:ID` names.
        """
        segment = self.get(segment_id)
        before, now = copy(segment), msgspec.structs.replace(segment, **said)
        if before == now:
            return
        links, new_links = explicit_references(before), explicit_references(now)
        for target in new_links:
            if target not in self:
                raise _unknown(target, named_by=segment_id, field="tags")
        for field in said:
            force_setattr(segment, field, getattr(now, field))
        self.ledger.restate(before, segment)
        self.index.annotate(before, segment)
        for target in links.keys() - new_links.keys():
            self._unlink(segment, self._segments[target])
        for target in new_links.keys() - links.keys():
            self._link(segment, self._segments[target])
        self.version += 1

    def stash(self, segment_id: str) -> None:
        """Move a segment out of the working tier; it stays intact and can be recalled."""
        self.stash_all((segment_id,))

    def stash_all(self, segment_ids: Iterable[str]) -> None:
        """Move many segments out of the working tier at once."""
        leaving = [s for s in map(self.get, dict.fromkeys(segment_ids)) if s.tier == "working"]
        self.ledger.move_all(leaving, "working", "stashed")
        for segment in leaving:
            force_setattr(segment, "tier", "stashed")
            self.index.stash(segment)
            self._remember(segment, -1)
        self.version += len(leaving)

    def put_away(self, segment_id: str, read: Callable[[str], str]) -> None:
        """Keep only the header of a stashed segment in memory; `read` returns its text."""
        segment = self._segments[segment_id]
        if segment.tier == "stashed":
            self.index.mentions.forget(segment_id)
            put_away(segment, read)

    def recall(self, segment_id: str) -> None:
        """Move a stashed segment back to the working tier; what took its place is removed."""
        segment = self.get(segment_id)
        if segment.tier == "working":
            return
        take_out(segment)
        force_setattr(segment, "tier", "working")
        self.ledger.move(segment, "stashed")
        del self.index.stashed[segment_id]
        self.index.enter(segment)
        self.index.mentions.add(segment_id, segment.text)
        self.order.append(segment_id)
        self._remember(segment, 1)
        self._touch(segment, None)
        self.version += 1
        for source in set(self.links.sources(segment_id)) - {segment_id}:
            stand_in = self.get(source)
            if stand_in.derived_from == segment_id and stand_in.position == segment.position:
                self.stash(source)

    def remove(self, segment_id: str) -> ContextSegment:
        """Delete a segment for good with all its links, and return it as it was."""
        segment = self.get(segment_id)
        for target in tuple(self.links.targets(segment_id)):
            self._unlink(segment, self._segments[target])
        for source in tuple(self.links.sources(segment_id)):
            self.unlink(source, segment_id)
        self.index.forget(segment)
        self.links.remembered.pop(segment_id, None)
        self._relinked.discard(segment_id)
        del self._segments[segment_id]
        self.ledger.delete(segment)
        self.version += 1
        return segment

    def rebuild(self, segments: Iterable[ContextSegment]) -> None:
        """Fill an empty heap with segments of a former one, headers as they were, nothing touched.

        Raises:
            InputError: two of them share an id, or one refers to an id that none of them has.
        """
        for segment in segments:
            if segment.segment_id in self:
                raise _taken(segment.segment_id)
            self._enter(segment)
        for segment in self._segments.values():
            force_setattr(segment, "refcount", 0)
        for segment in sorted(self._segments.values(), key=lambda segment: segment.position):
            for target in explicit_references(segment):
                if target not in self:
                    raise _unknown(target, named_by=segment.segment_id)
            self._link_all(segment)
            self.index.reopen(segment)
        self.order.extend(segment.segment_id for segment in self.working())

    def _own(self, segment: ContextSegment, nth: int) -> ContextSegment:
        """Copy a segment with the header fields that only this heap can know; change nothing here."""
        own = copy(segment)
        if segment.tokens is None:
            force_setattr(own, "tokens", self.count(segment.text))
        step = self.step + nth + 1
        force_setattr(own, "refcount", 0)
        force_setattr(own, "position", self._next_position + nth)
        force_setattr(own, "created_step", segment.created_step or step)
        force_setattr(own, "last_touched_step", segment.last_touched_step or step)
        return own

    def _pass_step(self, segment: ContextSegment) -> None:
        """Count the step of an arrival; numbers that are equal become one object, to save memory."""
        if segment.position == self.step:
            force_setattr(segment, "position", self.step)
        self.step = max(segment.last_touched_step, self.step + 1)

    def _place(self, segment: ContextSegment) -> None:
        self._enter(segment)
        if segment.tier == "working":
            self.order.append(segment.segment_id)
            self.index.enter(segment)
        else:
            self.index.stashed[segment.segment_id] = segment
        self.version += 1

    def _enter(self, segment: ContextSegment) -> None:
        self._displaced = self._displaced or segment.position < self._next_position
        self._next_position = max(self._next_position, segment.position + 1)
        self._segments[segment.segment_id] = segment
        self.ledger.enter(segment)

    def _link_all(self, segment: ContextSegment) -> None:
        for target in explicit_references(segment):
            self._link(segment, self._segments[target])

    def _arrive(self, segment: ContextSegment) -> None:
        """The write barrier: touch what the new text mentions, note what it makes stale."""
        index = self.index
        if segment.tier == "working":
            index.changed.append(segment.segment_id)
            for mentioned in index.mentions.add(segment.segment_id, segment.text):
                self._touch(self._segments[mentioned], segment.created_at)
        # What arrives stashed makes the older stale all the same, as if it had been stashed since.
        for older, how in index.supersession.arrive(segment).items():
            stale = self._segments[older]
            resolved = stale.failed and not segment.failed
            force_setattr(stale, "superseded_by", segment.segment_id)
            force_setattr(stale, "superseded_how", "resolved" if resolved else how)
            index.retire(stale)
