"""Sessions in a store, opened by whoever is not their agent: to look, to restore, to collect the stash."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ctxgc.core import HANDLE, is_tombstone
from ctxgc.session.session import Session
from ctxgc.stores import MemoryStore, Store, copy_session

_NO_WINDOW = 1_000_000
"""For sessions that never had a window, such as those of S0's files; nothing depends on it here."""


def open_stored(store: Store, session_id: str, now: datetime) -> Session:
    """Continue a session with its own window, and with a strategy that never acts by itself."""
    state = store.get(session_id, "state", "session") or {}
    limit = state.get("context_limit") or _NO_WINDOW
    return Session(limit, store=store, session_id=session_id, plugin="gc_none", clock=lambda: now)


def copy_in_memory(store: Store, session_id: str) -> Store:
    """Return a store in memory with a copy of a session, to try something on."""
    copy = MemoryStore()
    copy_session(store, copy, session_id)
    return copy


def lost_handles(store: Store, session_id: str) -> Iterator[str]:
    """Yield the handles that tombstones in the view of a session name and no segment has."""
    docs = [doc for _, doc in store.load(session_id, "segments")]
    live = {doc.get("handle") for doc in docs if doc.get("derived_from") is None}
    for doc in docs:
        text = str(doc.get("text", ""))
        if doc.get("tier") != "working" or not is_tombstone(text):
            continue
        for handle in HANDLE.findall(text.partition("\n")[0]):
            if handle not in live and not _is_elsewhere(store, session_id, handle):
                yield handle


def _is_elsewhere(store: Store, session_id: str, handle: str) -> bool:
    others = [info.session_id for info in store.sessions() if info.session_id != session_id]
    found = (doc for other in others for _, doc in store.load(other, "segments"))
    return any(doc.get("handle") == handle for doc in found)
