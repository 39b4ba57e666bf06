"""What the stores with their documents in memory have in common: how they answer questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from ctxgc.stores.base import Collection, SearchFilters, SessionInfo, StoreHit
from ctxgc.stores.forking import OneThreadAtATime
from ctxgc.stores.tables import Tables


class TableStore(OneThreadAtATime, ABC):
    """Answers from tables that `_current` brings up to date and holds still."""

    def revision(self, session_id: str) -> int:
        """Return how many commits a session has had; 0 if it is not known."""
        with self._current() as tables:
            return tables.revision(session_id)

    def load(self, session_id: str, collection: Collection) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection with their keys, in the order of first insertion."""
        with self._current() as tables:
            return tables.load(session_id, collection)

    def get(self, session_id: str, collection: Collection, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        with self._current() as tables:
            return tables.get(session_id, collection, key)

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions in the order of their ids."""
        with self._current() as tables:
            return tables.infos()

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        filters: SearchFilters | None = None,
        limit: int = 10,
    ) -> list[StoreHit]:
        """Return the segments that match best, best first, in one session or in all."""
        with self._current() as tables:
            return tables.search(query, session_id, filters, limit)

    @abstractmethod
    def _current(self) -> AbstractContextManager[Tables]:
        """Give the tables as they are now, to one thread at a time."""
