"""The indexes over the working tier, and who is stashed: entered, left and asked together.

What stands here is derived from the segments alone, so it can be built again from them.
"""

from __future__ import annotations

from collections import deque

from ctxgc.core.bonds import Bonds
from ctxgc.core.keys import KeyIndex
from ctxgc.core.mentions import Mentions
from ctxgc.core.recent import Recent
from ctxgc.core.segment import ContextSegment
from ctxgc.core.supersede import Supersession


class Indexes:
    """Shared keys, bonds, root candidates, mentions, supersession, and who is young, changed or stashed."""

    __slots__ = (
        "bonds",
        "changed",
        "keys",
        "mentions",
        "recent",
        "stashed",
        "supersession",
        "touched_old",
        "young",
    )

    def __init__(self) -> None:
        self.keys = KeyIndex()
        self.bonds = Bonds()
        self.recent = Recent()
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
        self.recent.add(segment)

    def leave(self, segment: ContextSegment) -> None:
        """Take a segment out of every index but supersession: what is stashed can grow stale too."""
        self.keys.discard(segment)
        self.bonds.discard(segment)
        self.recent.discard(segment)
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

    def retire(self, segment: ContextSegment) -> None:
        """Follow that a segment was superseded."""
        self.supersession.forget(segment)
        self.recent.resolve(segment)
        self.changed.append(segment.segment_id)

    def tenure(self, segment: ContextSegment) -> None:
        """Count a segment among the old."""
        self.young.pop(segment.segment_id, None)
        if segment.tier == "working":
            self.keys.promote(segment)
