"""Shrinking: what a live segment can become instead of leaving.

Evacuation keeps its live lines, compression a summary; both leave a stub that says how to get the
rest. What a provider signed or parses (thinking, tool calls, media) is never rewritten.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ctxgc.core.evacuate import evacuate
from ctxgc.core.heap import Heap
from ctxgc.core.options import EngineOptions
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import is_tombstone, tombstone

MIN_SAVING = 0.30
_PLAIN_PARTS = (None, "text", "tool_result")


class Shrunk(NamedTuple):
    """What to do with a segment, and the tokens that it frees."""

    action: Literal["evacuate", "compress"]
    freed: int


class Shrinker:
    """Decides how segments get smaller. `leaving` names what other working segments will not hold."""

    def __init__(self, heap: Heap, options: EngineOptions) -> None:
        self._heap = heap
        self._options = options
        self.leaving: set[str] = set()
        self.stubs: dict[str, str] = {}

    def shrink(self, segment: ContextSegment) -> Shrunk | None:
        """Return the kindest way to make a segment smaller, its stub noted; None when there is none."""
        if not _is_plain(segment):
            return None
        if self._may_evacuate(segment) and (freed := self._evacuate(segment)):
            return Shrunk("evacuate", freed)
        if self._options.can_compress and self.may_compress(segment):
            return Shrunk("compress", freed) if (freed := self._compress(segment)) else None
        return None

    def may_compress(self, segment: ContextSegment) -> bool:
        """Tell whether a segment is long and cold, so that a summary of it is worth its cost."""
        if (segment.tokens or 0) < self._options.verbose_tokens or not _is_plain(segment):
            return False
        return self._heap.step - segment.last_touched_step >= self._options.cold_steps

    def _may_evacuate(self, segment: ContextSegment) -> bool:
        long_enough = (segment.tokens or 0) >= self._options.evacuate_min_tokens
        return long_enough and segment.type in ("log", "code")

    def _evacuate(self, segment: ContextSegment) -> int:
        """Note the stub with the live lines and return what it frees, zero when that is too little."""
        mentions = self._heap.mentions
        names = mentions.going(segment.segment_id, segment.text, self.leaving)
        found = evacuate(segment.text, names)
        why = "reachable, but cold; its live lines stay"
        stub = self._tombstone(segment, why, names=found.names, kept=found.kept)
        tokens = segment.tokens or 0
        freed = tokens - self._heap.count(stub)
        if freed < MIN_SAVING * tokens:
            return 0
        self.stubs[segment.segment_id] = stub
        return freed

    def _compress(self, segment: ContextSegment) -> int:
        """Return what a summary frees at least; zero when the stub for a failed one has no room."""
        tokens = segment.tokens or 0
        room = int(tokens * self._options.compress_ratio)
        stub = self._tombstone(segment, "reachable, but cold; no summary could be made")
        if self._heap.count(stub) > room:
            return 0
        self.stubs[segment.segment_id] = stub
        return tokens - room

    def _tombstone(
        self, segment: ContextSegment, why: str, *, names: tuple[str, ...] = (), kept: str = ""
    ) -> str:
        recall = self._options.recall_call
        handle = segment.segment_id if recall else ""
        return tombstone(segment, why, handle=handle, recall=recall or "", names=names, kept=kept)


def _is_plain(segment: ContextSegment) -> bool:
    """Tell whether a segment is current text of its own, neither structure nor a stub already."""
    if segment.superseded_by is not None or segment.part not in _PLAIN_PARTS:
        return False
    return not is_tombstone(segment.text)
