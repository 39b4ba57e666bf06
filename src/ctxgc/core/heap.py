"""The heap: all segments of one session, with links, GC headers and the token ledger.

Every operation leaves the heap whole or, when it raises, as it was. The work of an arrival does not
depend on how many segments the heap holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy

from msgspec.structs import force_setattr

from ctxgc.core.admission import admit, rough_tokens, taken, unknown
from ctxgc.core.bonds import Bonds
from ctxgc.core.headers import Headers
from ctxgc.core.keys import KeyIndex
from ctxgc.core.ledger import Ledger
from ctxgc.core.mentions import Mentions
from ctxgc.core.recent import Recent
from ctxgc.core.segment import ContextSegment, explicit_references


class Heap(Headers):
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
        return iter(self.by_id.values())

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
        self.index.bonds.settle()
        return self.index.bonds

    @property
    def mentions(self) -> Mentions:
        """Who holds which rare identifier."""
        return self.index.mentions

    @property
    def recent(self) -> Recent:
        """What the root rules ask for."""
        return self.index.recent

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

        That is no arrival: no step passes, nothing is touched and nothing superseded.
        """
        place = self.get(segment_id).position
        if stand_in.segment_id in self:
            raise taken(stand_in.segment_id)
        own = self._own(stand_in, 0)
        force_setattr(own, "position", place)
        self._place(own)
        self._link_all(own)
        self.index.mentions.add(own.segment_id, own.text)
        for source in tuple(self.links.sources(segment_id)):
            if source != own.segment_id:
                self.link(source, own.segment_id)
        self.stash(segment_id)

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

    def recall(self, segment_id: str) -> None:
        """Move a stashed segment back to the working tier; what stood in its place makes room."""
        segment = self.get(segment_id)
        if segment.tier == "working":
            return
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
                raise taken(segment.segment_id)
            self._enter(segment)
        for segment in self._segments.values():
            force_setattr(segment, "refcount", 0)
        for segment in sorted(self._segments.values(), key=lambda segment: segment.position):
            for target in explicit_references(segment):
                if target not in self:
                    raise unknown(target, named_by=segment.segment_id)
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
