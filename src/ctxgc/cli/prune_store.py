"""The stash that pruning writes to: the real one, or a rehearsal in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ctxgc.cli.stash_store import opened
from ctxgc.errors import StoreError
from ctxgc.stores import Store
from ctxgc.stores.copy import copy_session
from ctxgc.stores.memory import MemoryStore


@contextmanager
def stash_for(url: str | None, session_id: str, *, dry: bool) -> Iterator[Store]:
    """Give the store to stash into; for a dry run a copy in memory of what it knows of the session.

    Raises:
        StoreError: the store cannot be opened or made.
    """
    if not dry:
        with opened(url, new=True) as store:
            yield store
        return
    rehearsal = MemoryStore()
    _copy(url, session_id, rehearsal)
    yield rehearsal


def _copy(url: str | None, session_id: str, rehearsal: MemoryStore) -> None:
    try:
        with opened(url) as store:
            if store.revision(session_id):
                copy_session(store, rehearsal, session_id)
    except StoreError as error:
        # No store yet: then it knows nothing of the session.
        if "path" not in error.details or "errno" in error.details:
            raise
