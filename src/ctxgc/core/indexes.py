"""The indexes over the working tier: entered, left and asked together.

What stands here is derived from the segments alone, so it can be built again from them.
"""

from __future__ import annotations

from ctxgc.core.bonds import Bonds
from ctxgc.core.keys import KeyIndex
from ctxgc.core.mentions import Mentions
from ctxgc.core.recent import Recent
from ctxgc.core.segment import ContextSegment
from ctxgc.core.supersede import Supersession


class Indexes:
    """Shared keys, bonds, root candidates, mentions, supersession, and who is young or changed."""

    __slots__ = (
        "bonds",
        "changed",
        "keys",
        "mentions",
        "recent",
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
        self.young: dict[str, None] = {}
        self.touched_old: dict[str, None] = {}
        self.changed: dict[str, None] = {}

    def enter(self, segment: ContextSegment) -> None:
        """Enter a segment of the working tier everywhere but in mentions and supersession."""
        if segment.generation == "young":
            self.young[segment.segment_id] = None
        self.keys.add(segment)
        self.bonds.add(segment)
        self.recent.add(segment)

    def leave(self, segment: ContextSegment) -> None:
        """Take a segment out of every index."""
        self.keys.discard(segment)
        self.bonds.discard(segment)
        self.recent.discard(segment)
        self.mentions.discard(segment.segment_id, segment.text)
        self.supersession.forget(segment)
        for group in (self.young, self.touched_old, self.changed):
            group.pop(segment.segment_id, None)

    def reopen(self, segment: ContextSegment) -> None:
        """Enter a segment that was here before, without the effects of an arrival."""
        self.enter(segment)
        self.mentions.add(segment.segment_id, segment.text)
        if segment.superseded_by is None:
            self.supersession.arrive(segment)

    def tenure(self, segment: ContextSegment) -> None:
        """Count a segment among the old."""
        self.young.pop(segment.segment_id, None)
        if segment.tier == "working":
            self.keys.promote(segment)
