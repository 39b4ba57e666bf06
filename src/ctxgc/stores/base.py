"""The protocol of every store: it keeps the documents of sessions, atomically and durably.

A document is a JSON object under a key, in one of six collections of a session. A commit writes a
batch of them: all or nothing, and on disk before it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import msgspec

CollectionName = Literal["segments", "messages", "checkpoints", "collections", "events", "state"]
COLLECTIONS: tuple[CollectionName, ...] = get_args(CollectionName)


class Put(msgspec.Struct, frozen=True):
    """Write a document, new or in place of the one with its key.

    A `flat` document is known to hold only JSON values and no floats, so it is written faster.
    """

    collection: CollectionName
    key: str
    doc: dict[str, Any]
    flat: bool = False


class Drop(msgspec.Struct, frozen=True):
    """Delete a document; nothing happens if there is none."""

    collection: CollectionName
    key: str


Write = Put | Drop


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a store knows about a session; `counts` has the number of documents per collection."""

    session_id: str
    revision: int
    created_at: datetime
    updated_at: datetime
    counts: dict[str, int]


class SearchFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Which segments a search may find. One of several `tags` is enough; the times are aware.

    `created_after` and `created_before` are inclusive.
    """

    file_path: str | None = None
    task_id: str | None = None
    tags: tuple[str, ...] = ()
    type: str | None = None
    tier: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


class StoreHit(msgspec.Struct, frozen=True, kw_only=True):
    """A segment that a search found; a higher score is a better match."""

    session_id: str
    key: str
    score: float
    doc: dict[str, Any]


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """Something a store noticed about its file: what was saved, lost or set aside.

    `damaged`: documents were lost; the file was set aside whole. `edited`: the file is readable but
    not as ctxgc wrote it. `torn`: a commit that never returned was written in part.
    """

    kind: Literal["damaged", "edited", "torn"]
    message: str
    set_aside: str | None = None
    saved: int = 0
    lost: int = 0


@runtime_checkable
class Store(Protocol):
    """The documents of many sessions. All methods may be called from several threads.

    Every method may raise `StoreError`: the disk or server failed, and what was stored is still stored.
    """

    @property
    def url(self) -> str:
        """The address that opens this store again, without a password."""
        ...

    @property
    def reports(self) -> tuple[StoreReport, ...]:
        """What this handle had to repair, oldest first."""
        ...

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision (1, 2, ...).

        The batch is durable when the call returns, and costs one durable write. An empty batch changes
        nothing.

        Raises:
            StoreBusyError: `expect` is not the revision that was found (`details`: expected, found),
                or another process held the store too long. Nothing was written.
            InputError: an id, a key, a collection or a document cannot be stored. Nothing was written.
        """
        ...

    def revision(self, session_id: str) -> int:
        """Return how many commits a session has had; 0 if it is unknown."""
        ...

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection with their keys, in the order of first insertion."""
        ...

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions in the order of their ids."""
        ...

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        filters: SearchFilters | None = None,
        limit: int = 10,
    ) -> list[StoreHit]:
        """Return the segments that match best, best first, in one session or in all.

        Segments with every word of the query come first; if there are none, those with any of them.
        The order is the same in every store that holds the same segments.
        """
        ...

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is allowed."""
        ...
