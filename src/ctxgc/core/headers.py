"""GC headers: the fields of a segment that only its heap writes, and the operations that write them.

A segment is frozen for everybody else. Every change here counts up the heap's version, so that a plan
made before it is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from msgspec.structs import force_setattr

from ctxgc.core.admission import unknown
from ctxgc.core.indexes import Indexes
from ctxgc.core.links import Links
from ctxgc.core.segment import REF_TAG, ContextSegment, checked_time


class Headers:
    """Segments by their id, with links and indexes, and how their headers change."""

    def __init__(self) -> None:
        self.links = Links()
        self.index = Indexes()
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
            raise unknown(segment_id)
        if segment_id in self._relinked:
            self._write_links(segment)
        return segment

    def peek(self, segment_id: str) -> ContextSegment | None:
        """Return a segment, or None when no segment has this id."""
        return self._segments.get(segment_id)

    @property
    def by_id(self) -> Mapping[str, ContextSegment]:
        """All segments by their id, with their present headers: for reading only, and for many."""
        for segment_id in tuple(self._relinked):
            self._write_links(self._segments[segment_id])
        return self._segments

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
        self.index.recent.watch(segment)
        self.version += 1

    def open_file(self, path: str) -> None:
        """Note that the user or the host opened or edited a file just now."""
        self.index.recent.open_file(path)
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
            self.index.recent.watch(segment)
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
