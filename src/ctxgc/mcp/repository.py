"""The repository of a context: its documents in a store. It survives any crash, and servers may share it.

What a change writes is committed in one piece before the caller gets an answer. A commit that finds the
context changed by another server writes nothing: the context is read again and the change repeated.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import (
    SEGMENT_FIELDS,
    Amount,
    ContextSegment,
    Heap,
    segment_from_dict,
    segment_to_dict,
    without_strays,
)
from ctxgc.errors import InputError, StoreBusyError, StoreVersionError
from ctxgc.mcp.context import FORMAT_VERSION, Context, Saved, saved_from_doc
from ctxgc.session import open_stored, shared_with_context, state_from_context
from ctxgc.stores import Drop, Put, Store, Write
from ctxgc.tokens import TokenCounter

STATE_KEY = "context"
COMMON_KEY = "common"
SESSION_KEY = "session"
"""The state of a session, for which the messages are kept that its segments are parts of."""


class ContextRepository:
    """Reads and writes one context.

    Args:
        store: where it is kept.
        session_id: its name there.
        base: the configuration of the server.
        context_limit: the window of a new context; None keeps that of a known one.
        counter: counts tokens.
        clock: gives the present time.
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
    ) -> None:
        self.store = store
        self.session_id = session_id
        self._base = base
        self._limit = context_limit
        self._counter = counter
        self._clock = clock
        self._context: Context | None = None
        self._revision = 0
        self._written: dict[str, ContextSegment] = {}
        self._documents: dict[str, dict[str, Any]] = {}

    def current(self) -> Context:
        """Return the context as the store has it now.

        Raises:
            InputError: the name belongs to a session of another interface.
            StoreError: it cannot be read.
        """
        found = self.store.revision(self.session_id)
        if self._context is None or found != self._revision:
            self._context = self._load()
        return self._context

    def forget(self) -> None:
        """Read the context again before its next use: what is in memory was not written."""
        self._context = None

    def save(self, context: Context) -> None:
        """Write everything that changed, in one commit.

        Raises:
            StoreBusyError: another server changed the context since it was read.
            StoreError: nothing was written.
        """
        for segment in map(context.heap.get, context.erasures):
            context.heap.ledger.restate_deleted(Amount(1, segment.tokens or 0))
        writes = [*self._segment_writes(context), *self._document_writes(context), *context.writes]
        if writes:
            self._revision = self.store.commit(self.session_id, writes, expect=self._revision)
        context.writes.clear()
        if context.erasures:
            self.forget()
            session = open_stored(self.store, self.session_id, self._clock())
            session.delete(context.erasures, confirm=True)

    def _load(self) -> Context:
        self._revision = self.store.revision(self.session_id)
        self._written, self._documents = {}, {}
        doc, session = self._read(STATE_KEY), self._read(SESSION_KEY)
        if doc is None and session is None:
            return self._fresh()
        saved = _checked({**(doc or {}), **shared_with_context(session or {})})
        heap = Heap(self._counter.count)
        heap.ledger.restate_deleted(saved.deleted)
        heap.mentions.restate_common((self._read(COMMON_KEY) or {}).get("names", ()))
        segments = self._segments()
        known = {segment.segment_id for segment in segments}
        heap.rebuild([without_strays(segment, known) for segment in segments])
        heap.version, heap.step, heap.updates = saved.version, saved.step, saved.updates
        if session is not None:
            # What another door did since is no change of ours: plans made before it are stale.
            heap.version += self._revision
            saved.collections = max(saved.collections, self._collections())
        heap.root_index.opened.update(dict.fromkeys(saved.opened))
        if doc is not None:
            heap.root_index.files = dict.fromkeys(saved.files)
            heap.root_index.first_request = saved.first_request
        context = Context(heap, saved, self._base, self._clock, has_messages=session is not None)
        context.stash.learn([segment.segment_id for segment in heap])
        if self.store.revision(self.session_id) != self._revision:
            raise StoreBusyError(
                f"the context '{self.session_id}' changed while it was read", hint="call again"
            )
        return context if context.has_messages else self._with_limit(context)

    def _collections(self) -> int:
        """How many collections there were, in every door."""
        return len(list(self.store.load(self.session_id, "collections")))

    def _fresh(self) -> Context:
        if self._revision:
            raise InputError(
                f"'{self.session_id}' holds segments that belong to no session",
                hint="start the server with another --session; recall finds its handles all the same",
                field="session",
            )
        saved = Saved(secret=secrets.token_hex(16))
        return self._with_limit(Context(Heap(self._counter.count), saved, self._base, self._clock))

    def _with_limit(self, context: Context) -> Context:
        if self._limit is not None and not context.saved.limit_by_agent:
            context.saved.context_limit = self._limit
        return context

    def _read(self, key: str) -> dict[str, Any] | None:
        doc = self.store.get(self.session_id, "state", key)
        if doc is not None:
            self._documents[key] = doc
        return doc

    def _segments(self) -> list[ContextSegment]:
        found = []
        for _, doc in self.store.load(self.session_id, "segments"):
            segment = segment_from_dict({k: v for k, v in doc.items() if k in SEGMENT_FIELDS})
            self._written[segment.segment_id] = copy(segment)
            found.append(segment)
        return found

    def _segment_writes(self, context: Context) -> list[Write]:
        writes: list[Write] = []
        for segment in context.heap:
            if self._written.get(segment.segment_id) != segment:
                self._written[segment.segment_id] = copy(segment)
                doc = {**segment_to_dict(segment), "handle": context.handle(segment.segment_id)}
                writes.append(Put("segments", segment.segment_id, doc))
        if len(self._written) > len(context.heap):
            gone = [segment_id for segment_id in self._written if segment_id not in context.heap]
            for segment_id in gone:
                del self._written[segment_id]
                writes.append(Drop("segments", segment_id))
        return writes

    def _document_writes(self, context: Context) -> list[Write]:
        heap, saved = context.heap, context.saved
        saved.version, saved.step, saved.updates = heap.version, heap.step, heap.updates
        saved.opened, saved.files = list(heap.root_index.opened), list(heap.root_index.files)
        saved.first_request = heap.root_index.first_request
        saved.deleted = heap.ledger.deleted
        state = dict(msgspec.to_builtins(saved))
        common = {"names": heap.mentions.common()}
        return [
            *self._changed(STATE_KEY, state),
            *self._changed(COMMON_KEY, common),
            *self._session_writes(state),
        ]

    def _session_writes(self, state: dict[str, Any]) -> list[Write]:
        """Tell the session what both doors know, if there is one."""
        known = self._documents.get(SESSION_KEY)
        if known is None:
            return []
        return self._changed(SESSION_KEY, {**known, **state_from_context(state)})

    def _changed(self, key: str, doc: dict[str, Any]) -> list[Write]:
        if self._documents.get(key, {"names": []} if key == COMMON_KEY else None) == doc:
            return []
        self._documents[key] = doc
        return [Put("state", key, doc)]


def _checked(doc: dict[str, Any]) -> Saved:
    if doc.get("format", 1) > FORMAT_VERSION:
        raise StoreVersionError(
            f"the context was written in format {doc['format']}, this ctxgc reads {FORMAT_VERSION}",
            hint="open it with a newer ctxgc; it was left alone",
        )
    return saved_from_doc(doc)
