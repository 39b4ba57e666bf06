"""Faults: what had left the view was needed again. Its like stays longer, and too many stop collecting."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ctxgc.core.segment import ContextSegment
from ctxgc.guard.thrashing import Thrash
from ctxgc.session.workings import Workings


def note_faults(
    w: Workings, segments: Iterable[ContextSegment], message_ids: Iterable[str] = ()
) -> None:
    """Take note that segments were asked for which had left, and which messages that brings back."""
    for segment in segments:
        w.ghosts.note(segment, w.requests)
    tell(w, w.thrashing.note_back(message_ids, w.requests))


def tell(w: Workings, found: Thrash | None) -> None:
    """Tell that collecting does more harm than good, if that was found; the next collection says it too."""
    if found is not None:
        w.thrash = {name: number for name, number in msgspec.to_builtins(found).items() if number}
        w.events.emit("thrashing", **w.thrash)
