"""The stash is collected too: by age, by size, and never under a live handle."""

from __future__ import annotations

import re
from datetime import timedelta

from ctxgc.core.segment import ContextSegment
from ctxgc.session.deleting import delete
from ctxgc.session.workings import Workings

_HANDLE = re.compile(r"h-[a-z2-7]{16}")


def collect_stash(
    w: Workings, *, max_age_seconds: float | None = None, max_bytes: int | None = None
) -> list[str]:
    """Delete what is too old, then the oldest beyond a size; return the ids of what is gone.

    What a tombstone in the view names, what a working segment refers to, and what is pinned stays.
    """
    free = [s for s in _stashed(w) if s.segment_id not in _held(w)]
    gone = _too_old(w, free, max_age_seconds)
    gone += _too_much(w, [s for s in free if s not in gone], max_bytes)
    return delete(w, [segment.segment_id for segment in gone]) if gone else []


def live_handles(w: Workings) -> set[str]:
    """Return every handle that a text in the view names."""
    return {
        handle
        for message in w.view.messages
        for part in message.parts
        for handle in _HANDLE.findall(part.text)
    }


def _stashed(w: Workings) -> list[ContextSegment]:
    return sorted((s for s in w.heap if s.tier == "stashed"), key=lambda s: s.last_touched_at)


def _held(w: Workings) -> set[str]:
    handles = live_handles(w)
    held = {s.segment_id for s in _stashed(w) if s.pinned or w.handle(s.segment_id) in handles}
    for segment in w.heap.working():
        held.update(w.heap.links.targets(segment.segment_id))
    return held


def _too_old(
    w: Workings, free: list[ContextSegment], max_age_seconds: float | None
) -> list[ContextSegment]:
    if max_age_seconds is None:
        return []
    oldest = w.clock() - timedelta(seconds=max_age_seconds)
    return [segment for segment in free if segment.last_touched_at < oldest]


def _too_much(
    w: Workings, free: list[ContextSegment], max_bytes: int | None
) -> list[ContextSegment]:
    if max_bytes is None:
        return []
    size = sum(len(s.text.encode("utf-8", "surrogatepass")) for s in _stashed(w))
    gone = []
    for segment in free:
        if size <= max_bytes:
            break
        size -= len(segment.text.encode("utf-8", "surrogatepass"))
        gone.append(segment)
    return gone
