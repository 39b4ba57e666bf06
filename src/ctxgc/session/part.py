"""What the parts of a session share: the core that each of them works on."""

from __future__ import annotations

from dataclasses import dataclass

from ctxgc.collector import Segmenter
from ctxgc.core import Heap
from ctxgc.session.archive import Archive, CollectionLog, Stash
from ctxgc.session.calls import Events
from ctxgc.session.state import Accounting, SessionOptions, SessionState
from ctxgc.session.view import BoundThinking, View


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCore:
    """One session's options, stored facts, messages, segments, sizes, store, collections and events."""

    options: SessionOptions
    state: SessionState
    view: View
    thinking: BoundThinking
    heap: Heap
    segmenter: Segmenter
    stash: Stash
    accounting: Accounting
    archive: Archive
    log: CollectionLog
    events: Events


class SessionPart:
    """A part of a session: it works on the core, and names the other parts that it needs."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._options = core.options
        self._state = core.state
        self._view = core.view
        self._thinking = core.thinking
        self._heap = core.heap
        self._segmenter = core.segmenter
        self._stash = core.stash
        self._accounting = core.accounting
        self._archive = core.archive
        self._log = core.log
        self._events = core.events
