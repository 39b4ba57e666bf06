"""The stash is collected too: by age, by size, and never under a live handle."""

from __future__ import annotations

import re
from datetime import timedelta

from ctxgc.core.segment import ContextSegment
from ctxgc.session.deleting import DELETED, delete, shown_by
from ctxgc.session.workings import Workings

_HANDLE = re.compile(r"h-[a-z2-7]{16}")


def collect_stash(
    w: Workings, *, max_age_seconds: float | None = None, max_bytes: int | None = None
) -> list[str]:
    """Delete what is too old, then the oldest beyond a size; return the ids of what is gone.

    What a tombstone in the view names or stands for, what a working segment refers to, what is
    pinned, and what a checkpoint shows stays.
    """
    stashed = _stashed(w)
    held = _held(w, stashed)
    free = [s for s in stashed if s.segment_id not in held]
    old = _too_old(w, free, max_age_seconds)
    size = sum(map(_bytes, stashed)) - sum(map(_bytes, old))
    gone = [s.segment_id for s in (*old, *_too_much(free[len(old) :], size, max_bytes))]
    return delete(w, gone) if gone else []


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


def _held(w: Workings, stashed: list[ContextSegment]) -> set[str]:
    handles, kept = live_handles(w), w.kept_messages() | _in_checkpoints(w)
    held = {
        s.segment_id
        for s in stashed
        if s.pinned
        or s.message_id in kept
        or s.text == DELETED
        or w.handle(s.segment_id) in handles
    }
    for segment in w.heap.working():
        held.update(w.heap.links.targets(segment.segment_id))
        held.update(filter(None, [segment.derived_from]))
    return held


def _in_checkpoints(w: Workings) -> set[str]:
    """The messages that a checkpoint shows: its tombstones must lead somewhere when it is restored."""
    docs = w.archive.store.load(w.archive.session_id, "checkpoints")
    return {message_id for _, doc in docs for message_id in shown_by(doc)}


def _too_old(
    w: Workings, free: list[ContextSegment], max_age_seconds: float | None
) -> list[ContextSegment]:
    """Those beyond an age; they are the first, since the oldest stand in front."""
    if max_age_seconds is None:
        return []
    oldest = w.clock() - timedelta(seconds=max_age_seconds)
    return [segment for segment in free if segment.last_touched_at < oldest]


def _too_much(free: list[ContextSegment], size: int, max_bytes: int | None) -> list[ContextSegment]:
    gone: list[ContextSegment] = []
    for segment in free:
        if max_bytes is None or size <= max_bytes:
            break
        size -= _bytes(segment)
        gone.append(segment)
    return gone


def _bytes(segment: ContextSegment) -> int:
    return len(segment.text.encode("utf-8", "surrogatepass"))
