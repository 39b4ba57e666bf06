"""The repository of a context: its session in a store. It survives any crash, and servers may share it.

What a change writes is committed in one piece before the caller gets an answer. A commit that finds the
session changed by another door writes nothing: the session is read again and the change repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.config import GCConfig
from ctxgc.errors import InputError, StoreVersionError
from ctxgc.mcp.context import (
    DEFAULT_CONTEXT_LIMIT,
    FORMAT_VERSION,
    AgentWindow,
    Context,
    Saved,
    saved_from_doc,
)
from ctxgc.session import (
    LEGACY_KEY,
    RECALL_CALL,
    SERVER_KEY,
    Put,
    Session,
    StagedStore,
    Store,
    TokenCounter,
    load_gc_plugin,
    server_doc,
    stop_flushing,
)


class ContextRepository:
    """Reads and writes one context.

    Args:
        store: where it is kept.
        session_id: its name there.
        base: the configuration of the server.
        context_limit: the window of a session that the server begins; a known one keeps its own.
        counter: counts tokens.
        clock: gives the present time.
        window: that of the agent.
    """

    def __init__(
        self,
        store: Store,
        session_id: str,
        base: GCConfig,
        *,
        context_limit: int | None,
        counter: TokenCounter,
        clock: Callable[[], datetime],
        window: AgentWindow | None = None,
    ) -> None:
        self.store = store
        self.session_id = session_id
        self._base = base
        self._limit = context_limit
        self._counter = counter
        self._clock = clock
        self._window = AgentWindow() if window is None else window
        self._context: Context | None = None
        self._staged = StagedStore(store, session_id)
        self._written: dict[str, Any] = {}

    @property
    def revision(self) -> int:
        """The revision of the store that the context in memory was read from, or written as."""
        return self._staged.base

    def current(self) -> Context:
        """Return the context as the store has it now.

        Raises:
            InputError: the name belongs to a session of another interface.
            StoreError: it cannot be read.
        """
        if self._context is None or self.store.revision(self.session_id) != self.revision:
            self.forget()
            self._context = self._load()
        return self._context

    def forget(self) -> None:
        """Read the context again before its next use: what is in memory was not written."""
        if self._context is not None:
            stop_flushing(self._context.session)
        self._context = None

    def save(self, context: Context) -> None:
        """Write everything that changed, in one commit.

        Raises:
            StoreBusyError: another door changed the session since it was read.
            StoreError: nothing was written.
        """
        context.session.flush()
        doc = dict(msgspec.to_builtins(context.saved))
        more = [] if doc == self._written else [Put("state", SERVER_KEY, doc)]
        self._staged.write(more)
        self._written = doc

    def _load(self) -> Context:
        self._staged = staged = StagedStore(self.store, self.session_id)
        known, doc, legacy = (
            self.store.get(self.session_id, "state", key)
            for key in ("session", SERVER_KEY, LEGACY_KEY)
        )
        if doc is None and legacy is not None:
            doc = server_doc(legacy, is_own=known is None)
        if doc is None and known is None:
            self._check_unused()
        saved = Saved(is_own=known is None) if doc is None else _checked(doc)
        stored = (known or legacy or {}).get("context_limit")
        session = Session(
            stored or self._limit or DEFAULT_CONTEXT_LIMIT,
            config=self._base.replace(**saved.settings),
            plugin=load_gc_plugin("gc_none"),
            store=staged,
            session_id=self.session_id,
            counter=self._counter,
            clock=self._clock,
            recall_call=RECALL_CALL,
        )
        staged.base = session.inspect().archive.revision
        self._written = dict(doc or {})
        return Context(session, saved, self._base, self._clock, self._window)

    def _check_unused(self) -> None:
        if self.store.revision(self.session_id):
            raise InputError(
                f"'{self.session_id}' holds segments that belong to no session",
                hint="start the server with another --session; recall finds its handles all the same",
                field="session",
            )


def _checked(doc: dict[str, Any]) -> Saved:
    written = doc.get("format", 1)
    if isinstance(written, int) and written > FORMAT_VERSION:
        raise StoreVersionError(
            f"the context was written in format {written}, this ctxgc reads {FORMAT_VERSION}",
            hint="open it with a newer ctxgc; it was left alone",
        )
    return saved_from_doc(doc)
