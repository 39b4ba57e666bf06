"""SessionFacts: what a session answers, without what changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxgc.budget import InstructionBudget
from ctxgc.config import GCConfig
from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.session.events import Callback
from ctxgc.session.stash import excerpt
from ctxgc.session.usage import ContextUsage
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCPlugin, GCResult
from ctxgc.wire import render


class SessionFacts:
    """The questions that a session answers; `Session` adds what changes it."""

    _w: Workings

    def view(self) -> list[dict[str, Any]]:
        """Return the messages as they are now, without collecting or checking."""
        return render(self._w.view.messages)

    @property
    def history(self) -> list[Message]:
        """The messages of the view, in parts, to be read; `messages()` gives copies that may change."""
        return list(self._w.view.messages)

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in, or was changed by hand, that the store does not hold yet."""
        return self._w.archive.is_pending or bool(self._w.unsaved)

    def arrivals(self) -> list[str]:
        """Return the ids of the messages that came in, in order; some may have left the view since."""
        return [arrival.message_id for arrival in self._w.view.arrivals]

    def usage(self) -> ContextUsage:
        """Return how full the context is."""
        return self._w.usage()

    @property
    def gc_history(self) -> list[GCResult]:
        """The results of all collections, refused ones included, oldest first."""
        return list(self._w.results)

    def read(
        self, handle: str, *, lines: tuple[int, int] | None = None, pattern: str | None = None
    ) -> str:
        """Return the text of a segment, or the lines asked for, and leave the view alone.

        Raises:
            UnknownHandleError: nothing answers to the handle.
        """
        return excerpt(self._w.stash.find(handle).text, lines=lines, pattern=pattern)

    def segments(self) -> list[ContextSegment]:
        """Return all segments of the session, stashed ones included."""
        return list(self._w.heap)

    def events(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return what ends that."""
        return self._w.events.subscribe(callback)

    @property
    def session_id(self) -> str:
        """The id that continues this session in its store."""
        return self._w.archive.session_id

    @property
    def config(self) -> GCConfig:
        """The configuration in force."""
        return self._w.config

    @property
    def plugin(self) -> GCPlugin:
        """The strategy in force."""
        return self._w.plugin

    @property
    def budget(self) -> InstructionBudget:
        """The ledger of what is in the context, by source, child and policy."""
        return self._w.books.budget

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        return self._w.books.budget.context_limit
