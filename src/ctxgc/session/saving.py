"""Saving: what is new or changed goes to the archive and is made durable."""

from __future__ import annotations

from ctxgc.session.restoring import state_write
from ctxgc.session.workings import Workings


def save_segments(w: Workings) -> None:
    """Write with the next commit the segments that are new or were changed by hand."""
    segments = [s for s in map(w.heap.peek, w.unsaved) if s is not None]
    w.archive.note_segments(segments, w.handle)
    w.unsaved.clear()


def save(w: Workings) -> None:
    """Make everything durable that came in or was changed by hand since the last time."""
    save_segments(w)
    w.archive.commit(state_write(w))


def save_all(w: Workings) -> None:
    """Make everything durable, every header included."""
    w.archive.note_segments(w.heap, w.handle)
    save(w)
