"""A store in front of another one, which holds what a session commits until it is written in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxgc.stores.base import (
    CollectionName,
    Put,
    SearchFilters,
    SessionInfo,
    Store,
    StoreHit,
    StoreReport,
    Write,
)


class StagedStore:
    """Lets several commits of one session become one, or none.

    Reading documents shows what is staged; searching does not. `base` is the revision of the store that the
    staged writes belong to: whoever opens the session sets it.
    """

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._staged: dict[tuple[CollectionName, str], Write] = {}
        self.base = 0

    @property
    def url(self) -> str:
        """The address of the store behind."""
        return self._store.url

    @property
    def reports(self) -> tuple[StoreReport, ...]:
        """What the store behind had to repair."""
        return self._store.reports

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Stage a batch and return the revision that follows the expected one.

        Another session's batch is written at once.
        """
        if session_id != self._session_id:
            return self._store.commit(session_id, writes, expect=expect)
        self._staged.update({(write.collection, write.key): write for write in writes})
        return (self.base if expect is None else expect) + 1

    def write(self, more: Sequence[Write] = ()) -> None:
        """Write all that is staged and these in one commit; nothing is staged any more.

        Raises:
            StoreBusyError: someone else wrote to the session since `base`. Nothing was written.
            StoreError: nothing was written.
        """
        writes = [*self._staged.values(), *more]
        if writes:
            self.base = self._store.commit(self._session_id, writes, expect=self.base)
        self._staged.clear()

    def revision(self, session_id: str) -> int:
        """Return the revision of the store behind."""
        return self._store.revision(session_id)

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection, with what is staged."""
        rows = dict(self._store.load(session_id, collection))
        if session_id == self._session_id:
            for (where, key), write in self._staged.items():
                if where != collection:
                    continue
                if isinstance(write, Put):
                    rows[key] = write.doc
                else:
                    rows.pop(key, None)
        return list(rows.items())

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
        """Return one document, or None; a staged one if there is one."""
        staged = self._staged.get((collection, key)) if session_id == self._session_id else None
        if staged is not None:
            return staged.doc if isinstance(staged, Put) else None
        return self._store.get(session_id, collection, key)

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions of the store behind."""
        return self._store.sessions()

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        filters: SearchFilters | None = None,
        limit: int = 10,
    ) -> list[StoreHit]:
        """Search the store behind."""
        return self._store.search(query, session_id=session_id, filters=filters, limit=limit)

    def drop_session(self, session_id: str) -> None:
        """Delete a session, with what is staged of it."""
        if session_id == self._session_id:
            self._staged.clear()
        self._store.drop_session(session_id)

    def close(self) -> None:
        """Do nothing: the store behind is closed by whoever opened it."""
