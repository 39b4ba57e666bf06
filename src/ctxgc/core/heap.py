"""The heap: all segments of one session, with links, GC headers and the token ledger.

Every operation leaves the heap whole or, when it raises, as it was. The work of an arrival does not
depend on how many segments the heap holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from datetime import datetime

from msgspec.structs import force_setattr

from ctxgc.core.bonds import Bonds
from ctxgc.core.indexes import Indexes
from ctxgc.core.keys import KeyIndex
from ctxgc.core.ledger import Ledger
from ctxgc.core.links import Links
from ctxgc.core.mentions import Mentions
from ctxgc.core.recent import Recent
from ctxgc.core.segment import ContextSegment, Tier, explicit_references
from ctxgc.errors import DuplicateSegmentError, UnknownSegmentError


def rough_tokens(text: str) -> int:
    """Return a quarter of the characters, rounded up: what a heap uses when it is given no counter."""
    return (len(text) + 3) // 4


class Heap:
    """The segments of one session.

    Args:
        count: counts the tokens of a text; called once per segment that comes without `tokens`.
    """

    def __init__(self, count: Callable[[str], int] = rough_tokens) -> None:
        self.ledger = Ledger()
        self.links = Links()
        self.index = Indexes()
        self.step = 0
        self.version = 0
        self.order: list[str] = []
        self.cursor = 0
        self.count = count
        self._segments: dict[str, ContextSegment] = {}
        self._relinked: set[str] = set()
        self._next_position = 0
        self._displaced = False

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, segment_id: object) -> bool:
        return segment_id in self._segments

    def __iter__(self) -> Iterator[ContextSegment]:
        self._refresh_references()
        return iter(self._segments.values())

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
        """Who holds which file, tag or topic."""
        return self.index.keys

    @property
    def bonds(self) -> Bonds:
        """Which segments live and die together."""
        return self.index.bonds

    @property
    def mentions(self) -> Mentions:
        """Who holds which rare identifier."""
        return self.index.mentions

    @property
    def recent(self) -> Recent:
        """What the root rules ask for."""
        return self.index.recent

    def get(self, segment_id: str) -> ContextSegment:
        """Return a segment with its present header.

        Raises:
            UnknownSegmentError: no segment has this id.
        """
        segment = self._segments.get(segment_id)
        if segment is None:
            raise unknown(segment_id)
        if segment_id in self._relinked:
            self._refresh_references()
        return segment

    def peek(self, segment_id: str) -> ContextSegment | None:
        """Return a segment, or None when no segment has this id."""
        return self._segments.get(segment_id)

    def working(self) -> list[ContextSegment]:
        """Return the segments of the working tier in order of arrival."""
        segments = [s for s in self._segments.values() if s.tier == "working"]
        if self._displaced:
            segments.sort(key=lambda segment: segment.position)
        return segments

    def add(self, segment: ContextSegment, *, position: int | None = None) -> str:
        """Take in one segment and return its id; the same segment again changes nothing.

        Args:
            segment: a segment of the caller's; the heap keeps a copy of its own.
            position: the place in the order of arrival, for a stub that stands in for another segment.

        Raises:
            DuplicateSegmentError: the id is taken by another text.
            UnknownSegmentError: it refers to an id that the heap does not hold.
        """
        return self.add_all((segment,), position=position)[0]

    def add_all(
        self, segments: Iterable[ContextSegment], *, position: int | None = None
    ) -> list[str]:
        """Take in a batch, whose members may refer to each other; all come in or none."""
        batch = list(segments)
        self._check_batch(batch)
        arrived: dict[str, ContextSegment] = {}
        for segment in batch:
            if segment.segment_id not in self._segments and segment.segment_id not in arrived:
                arrived[segment.segment_id] = self._own(segment, len(arrived), position)
        for segment in arrived.values():
            self._place(segment)
        for segment in arrived.values():
            for target in explicit_references(segment):
                self.link(segment.segment_id, target)
        for segment in arrived.values():
            self._arrive(segment)
        return [segment.segment_id for segment in batch]

    def touch(self, segment_id: str, now: datetime | None = None) -> None:
        """Note that a segment was used at this step, and at this time if one is given."""
        segment = self.get(segment_id)
        self._touch(segment, now)
        self.version += 1

    def link(self, source: str, target: str) -> None:
        """Add an explicit link; one that exists stays single."""
        origin, goal = self.get(source), self.get(target)
        if not self.links.add(source, target):
            return
        self._relinked.add(source)
        force_setattr(goal, "refcount", self.links.refcount(target))
        if origin.generation == "old" and goal.generation == "young":
            self.links.remember(target, 1)
        self.version += 1

    def unlink(self, source: str, target: str) -> None:
        """Remove an explicit link; a missing one changes nothing."""
        origin, goal = self.get(source), self.get(target)
        if not self.links.discard(source, target):
            return
        self._relinked.add(source)
        force_setattr(goal, "refcount", self.links.refcount(target))
        if origin.generation == "old" and goal.generation == "young":
            self.links.remember(target, -1)
        self.version += 1

    def pin(self, segment_id: str) -> None:
        """Protect a segment from every collection."""
        self._set_pinned(segment_id, pinned=True)

    def unpin(self, segment_id: str) -> None:
        """Take the protection of a pin away."""
        self._set_pinned(segment_id, pinned=False)

    def protect(self, segment_id: str, until_step: int) -> None:
        """Protect a segment until a step has passed: a pin that decays."""
        force_setattr(self.get(segment_id), "protected_until", until_step)
        self.index.recent.watch(self.get(segment_id))
        self.version += 1

    def stash(self, segment_id: str) -> None:
        """Move a segment out of the working tier; it stays intact and can be recalled."""
        self._move(self.get(segment_id), "stashed")

    def recall(self, segment_id: str) -> None:
        """Move a stashed segment back to the working tier."""
        self._move(self.get(segment_id), "working")

    def remove(self, segment_id: str) -> ContextSegment:
        """Delete a segment for good with all its links, and return it as it was."""
        segment = self.get(segment_id)
        for target in tuple(self.links.targets(segment_id)):
            self.unlink(segment_id, target)
        for source in tuple(self.links.sources(segment_id)):
            self.unlink(source, segment_id)
        if segment.tier == "working":
            self.index.leave(segment)
        self.links.remembered.pop(segment_id, None)
        self._relinked.discard(segment_id)
        del self._segments[segment_id]
        self.ledger.delete(segment)
        self.version += 1
        return segment

    def tenure(self, segment_id: str) -> None:
        """Make a young segment old, and remember what it refers to among the young."""
        segment = self.get(segment_id)
        if segment.generation == "old":
            return
        force_setattr(segment, "generation", "old")
        self.index.tenure(segment)
        self.links.remembered.pop(segment_id, None)
        for target in self.links.targets(segment_id):
            if self._segments[target].generation == "young":
                self.links.remember(target, 1)
        self.version += 1

    def rebuild(self, segments: Iterable[ContextSegment]) -> None:
        """Fill an empty heap with segments of a former one, headers as they were, nothing touched."""
        known = sorted(segments, key=lambda segment: segment.position)
        for segment in known:
            self._segments[segment.segment_id] = segment
            self.ledger.enter(segment)
        for segment in known:
            for target in explicit_references(segment):
                self.links.add(segment.segment_id, target)
                if segment.generation == "old" and self._segments[target].generation == "young":
                    self.links.remember(target, 1)
            if segment.tier == "working":
                self.index.reopen(segment)
        self.order = [segment.segment_id for segment in known]
        self._next_position = known[-1].position + 1 if known else 0

    def survive(self, segment_id: str) -> int:
        """Count one more collection that a segment outlived, and return the new count."""
        segment = self.get(segment_id)
        count = segment.gc_survival_count + 1
        force_setattr(segment, "gc_survival_count", count)
        self.version += 1
        return count

    def _check_batch(self, batch: list[ContextSegment]) -> None:
        texts: dict[str, str] = {}
        for segment in batch:
            known = self._segments.get(segment.segment_id)
            text = known.text if known is not None else texts.get(segment.segment_id)
            if text is not None and text != segment.text:
                raise _taken(segment.segment_id)
            texts[segment.segment_id] = segment.text
        for segment in batch:
            for target, kind in explicit_references(segment).items():
                if target not in texts and target not in self._segments:
                    raise unknown(target, named_by=segment.segment_id, field=_FIELD_OF[kind])

    def _own(self, segment: ContextSegment, nth: int, position: int | None) -> ContextSegment:
        """Copy a segment with the header fields that only this heap can know; change nothing here."""
        own = copy(segment)
        if segment.tokens is None:
            force_setattr(own, "tokens", self.count(segment.text))
        step = self.step + nth + 1
        force_setattr(own, "refcount", 0)
        force_setattr(own, "position", self._next_position + nth if position is None else position)
        force_setattr(own, "created_step", segment.created_step or step)
        force_setattr(own, "last_touched_step", segment.last_touched_step or step)
        return own

    def _place(self, segment: ContextSegment) -> None:
        self.step += 1
        self._displaced = self._displaced or segment.position < self._next_position
        self._next_position = max(self._next_position, segment.position + 1)
        self._segments[segment.segment_id] = segment
        self.order.append(segment.segment_id)
        self.ledger.enter(segment)
        if segment.tier == "working":
            self.index.enter(segment)
        self.version += 1

    def _arrive(self, segment: ContextSegment) -> None:
        """The write barrier: touch what the new text mentions, note what it makes stale."""
        if segment.tier != "working":
            return
        self.index.changed[segment.segment_id] = None
        for mentioned in self.index.mentions.add(segment.segment_id, segment.text):
            self._touch(self._segments[mentioned], segment.created_at)
        for older, how in self.index.supersession.arrive(segment).items():
            stale = self._segments[older]
            resolved = stale.failed and not segment.failed
            force_setattr(stale, "superseded_by", segment.segment_id)
            force_setattr(stale, "superseded_how", "resolved" if resolved else how)
            self.index.recent.resolve(stale)
            self.index.changed[older] = None

    def _touch(self, segment: ContextSegment, now: datetime | None) -> None:
        force_setattr(segment, "touches", segment.touches + 1)
        force_setattr(segment, "last_touched_step", self.step)
        if now is not None and now > segment.last_touched_at:
            force_setattr(segment, "last_touched_at", now)
        if segment.generation == "old" and segment.tier == "working":
            self.index.touched_old[segment.segment_id] = None

    def _set_pinned(self, segment_id: str, *, pinned: bool) -> None:
        segment = self.get(segment_id)
        if segment.pinned != pinned:
            force_setattr(segment, "pinned", pinned)
            self.index.recent.watch(segment)
            self.version += 1

    def _move(self, segment: ContextSegment, tier: Tier) -> None:
        before = segment.tier
        if before == tier:
            return
        force_setattr(segment, "tier", tier)
        self.ledger.move(segment, before)
        if tier == "working":
            self.index.reopen(segment)
            self._touch(segment, None)
        else:
            self.index.leave(segment)
        self.version += 1

    def _refresh_references(self) -> None:
        """Write the links made since creation into the `references` field of their sources."""
        for segment_id in self._relinked:
            segment = self._segments[segment_id]
            others = {segment.reply_to, segment.derived_from}
            targets = tuple(sorted(self.links.targets(segment_id)))
            named = tuple(t for t in targets if t not in others or t in segment.references)
            force_setattr(segment, "references", named)
        self._relinked.clear()


_FIELD_OF = {"reference": "references", "reply": "reply_to", "derived-from": "derived_from"}


def unknown(
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
    return DuplicateSegmentError(
        f"the id '{segment_id}' belongs to a segment with another text",
        hint="a segment's text never changes: give the new text an id of its own",
        field="segment_id",
        segment_id=segment_id,
    )
