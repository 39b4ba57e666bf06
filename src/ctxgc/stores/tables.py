"""Sessions in memory: the tables, their search indexes, and the stores that read from them.

`TableStore` is the base of every store that keeps its documents in memory; `MemoryStore` keeps them nowhere
else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from heapq import nlargest
from operator import itemgetter
from typing import Any

import msgspec

from ctxgc.core import utc_now
from ctxgc.errors import InputError, StoreDamagedError
from ctxgc.stores.base import (
    COLLECTIONS,
    DIGEST,
    CollectionName,
    Prepared,
    SearchFilters,
    SessionInfo,
    StoreHit,
    StoreReport,
    Write,
    check_collection,
    check_digest,
    check_name,
    check_revision,
    encode,
    opened,
    prepare,
)
from ctxgc.stores.concurrency import ForkSafe
from ctxgc.stores.search import (
    CANDIDATES,
    COMMON,
    Candidate,
    Query,
    SearchEntry,
    index_entry,
    parse_query,
    passes_filters,
    rank,
)


class SessionTable:
    """The documents of one session, each collection in the order of first insertion."""

    def __init__(self, session_id: str, created_at: datetime) -> None:
        self.session_id = session_id
        self.revision = 0
        self.created_at = created_at
        self.updated_at = created_at
        self.docs: dict[CollectionName, dict[str, str]] = {name: {} for name in COLLECTIONS}
        self.orders: dict[str, int] = {}
        self._index: SessionIndex | None = None

    def info(self) -> SessionInfo:
        """Return what `sessions()` says about it."""
        return SessionInfo(
            session_id=self.session_id,
            revision=self.revision,
            created_at=self.created_at,
            updated_at=self.updated_at,
            counts={name: len(docs) for name, docs in self.docs.items()},
        )

    def write(self, write: Prepared, order: int) -> None:
        """Put or drop one document; `order` is the number of a segment that is new."""
        if write.text is None:
            self.docs[write.collection].pop(write.key, None)
        else:
            self.docs[write.collection][write.key] = write.text
        if write.collection == "segments":
            self._write_segment(write, order)

    def index(self) -> SessionIndex:
        """Return the search index; made on first use and kept up to date from then on."""
        if self._index is None:
            self._index = SessionIndex(self.session_id)
            for key, text in self.docs["segments"].items():
                self._index.put(key, self.orders[key], opened("segments", key, text))
        return self._index

    def _write_segment(self, write: Prepared, order: int) -> None:
        if write.text is None:
            self.orders.pop(write.key, None)
        else:
            order = self.orders.setdefault(write.key, order)
        if self._index is None:
            return
        if write.doc is None:
            self._index.drop(write.key)
        else:
            self._index.put(write.key, order, write.doc)


class Tables:
    """The tables of all sessions."""

    def __init__(self) -> None:
        self.sessions: dict[str, SessionTable] = {}
        self.order = 0

    def check(self, session_id: str, expect: int | None) -> int:
        """Return the revision of a session.

        Raises:
            StoreBusyError: it is not the expected one.
        """
        found = self.revision(session_id)
        check_revision(session_id, expect, found)
        return found

    def apply(self, session_id: str, writes: Iterable[Prepared], now: datetime) -> int:
        """Write a batch and return the session's new revision."""
        table = self.table(session_id, now)
        for write in writes:
            self.order += 1
            table.write(write, self.order)
        table.revision += 1
        table.updated_at = now
        return table.revision

    def restore(self, table: SessionTable, collection: CollectionName, key: str, doc: Any) -> bool:
        """Put a document from a file; return False if it is not a valid one."""
        try:
            check_name("key", key)
            digest = doc.get(DIGEST) if isinstance(doc, dict) else None
            if digest is not None:
                rest = {name: value for name, value in doc.items() if name != DIGEST}
                check_digest(collection, key, rest, digest)
            write = Prepared(collection, key, encode(doc), doc)
        except (InputError, StoreDamagedError):
            return False
        self.order += 1
        table.write(write, self.order)
        return True

    def table(self, session_id: str, now: datetime) -> SessionTable:
        """Return the table of a session, made if it is new."""
        return self.sessions.setdefault(session_id, SessionTable(session_id, now))

    def revision(self, session_id: str) -> int:
        """Return the revision of a session, 0 for an unknown one."""
        table = self.sessions.get(session_id)
        return table.revision if table else 0

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return the documents of a collection."""
        docs = self._docs(session_id, collection)
        return [(key, opened(collection, key, text)) for key, text in docs.items()]

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        text = self._docs(session_id, collection).get(key)
        return None if text is None else opened(collection, key, text)

    def infos(self) -> list[SessionInfo]:
        """Return the infos of all sessions, in the order of their ids."""
        return [self.sessions[session_id].info() for session_id in sorted(self.sessions)]

    def search(
        self, text: str, session_id: str | None, filters: SearchFilters | None, limit: int
    ) -> list[StoreHit]:
        """Return the best segments of one session or of all."""
        asked = parse_query(text, filters)
        tables = [self.sessions[name] for name in self._searched(session_id)]
        found = rank(SessionIndexes([table.index() for table in tables]), asked, limit)
        return [
            StoreHit(
                session_id=name,
                key=key,
                score=score,
                doc=opened("segments", key, self._segment(name, key)),
            )
            for score, name, key in found
        ]

    def _searched(self, session_id: str | None) -> list[str]:
        if session_id is None:
            return list(self.sessions)
        return [session_id] if session_id in self.sessions else []

    def _segment(self, session_id: str, key: str) -> str:
        return self.sessions[session_id].docs["segments"][key]

    def _docs(self, session_id: str, collection: CollectionName) -> dict[str, str]:
        check_collection(collection)
        table = self.sessions.get(session_id)
        return table.docs[collection] if table else {}


# -- The search index of a session


class _Slot(msgspec.Struct, gc=False):
    """A segment in the index."""

    key: str
    order: int
    entry: SearchEntry


class SessionIndex:
    """Finds the segments of one session by their words."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.length = 0
        self._slots: dict[int, _Slot] = {}
        self._by_key: dict[str, int] = {}
        self._lists: defaultdict[str, list[int]] | None = None
        self._next = 0
        self._was_asked = False

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, key: str, order: int, doc: dict[str, Any]) -> None:
        """Index a segment, new or changed; `order` says how new it is."""
        slot = self._by_key.get(key)
        old = None if slot is None else self._slots[slot].entry
        new = index_entry(doc, old)
        if slot is not None and old is not None and new.digest == old.digest:
            self._slots[slot] = _Slot(key, order, new)
        else:
            self.drop(key)
            self._add(_Slot(key, order, new))

    def drop(self, key: str) -> None:
        """Forget a segment."""
        slot = self._by_key.pop(key, None)
        if slot is None:
            return
        self.length -= self._slots.pop(slot).entry.length
        if self._next > 1_000 and self._next > 2 * len(self._slots):
            self._compact()

    def count(self, word: str) -> int:
        """Return how many segments have a word."""
        numbers = self._having(word)
        if self._next == len(self._slots):
            return len(numbers)
        return sum(number in self._slots for number in numbers)

    def is_worth_lists(self) -> bool:
        """Return whether it was searched before and has no word lists yet."""
        return self._was_asked and self._lists is None

    def make_lists(self) -> None:
        """Make the word lists; from then on they are kept up to date."""
        self._lists = defaultdict(list)
        for number, slot in self._slots.items():
            self._list(number, slot)

    def having(self, asked: Query) -> list[tuple[int, _Slot, str]]:
        """Return the segments with all words that pass the filters: order, slot, session id."""
        lists = sorted(map(self._having, asked.words), key=len)
        common = set(lists[0]).intersection(*lists[1:]) if len(lists) > 1 else lists[0]
        found = (self._slots[number] for number in common if number in self._slots)
        return [
            (slot.order, slot, self.session_id)
            for slot in found
            if passes_filters(asked, slot.entry)
        ]

    def _having(self, word: str) -> list[int]:
        """Return the slots with a word, perhaps including freed ones."""
        if self._lists is not None:
            return self._lists.get(word, [])
        self._was_asked = True
        spaced = f" {word} "
        return [number for number, slot in self._slots.items() if spaced in slot.entry.words]

    def _compact(self) -> None:
        live, had_lists = list(self._slots.values()), self._lists is not None
        self.length = self._next = 0
        self._slots, self._by_key, self._lists = {}, {}, None
        for slot in live:
            self._add(slot)
        if had_lists:
            self.make_lists()

    def _add(self, slot: _Slot) -> None:
        number, self._next = self._next, self._next + 1
        self._by_key[slot.key] = number
        self._slots[number] = slot
        self.length += slot.entry.length
        self._list(number, slot)

    def _list(self, number: int, slot: _Slot) -> None:
        lists = self._lists
        if lists is not None:
            for word in set(slot.entry.words.split()):
                lists[word].append(number)


class SessionIndexes:
    """The indexes of several sessions as one source.

    Each search makes the word lists of one of them, so that no search pays for all.
    """

    def __init__(self, indexes: list[SessionIndex]) -> None:
        self._indexes = indexes
        worth = next((index for index in indexes if index.is_worth_lists()), None)
        if worth is not None:
            worth.make_lists()

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        return sum(map(len, self._indexes)), sum(index.length for index in self._indexes)

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        return min(sum(index.count(word) for index in self._indexes), COMMON)

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest candidates that have all words and pass the filters."""
        found = [hit for index in self._indexes for hit in index.having(asked)]
        return [
            Candidate(session_id, slot.key, slot.entry.length, slot.entry.words)
            for _, slot, session_id in nlargest(CANDIDATES, found, key=itemgetter(0))
        ]


# -- Stores


class TableStore(ForkSafe, ABC):
    """Base of the stores with their documents in memory: answers from the tables that `_current` gives."""

    def revision(self, session_id: str) -> int:
        """Return how many commits a session has had; 0 if it is not known."""
        with self._current() as tables:
            return tables.revision(session_id)

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection with their keys, in the order of first insertion."""
        with self._current() as tables:
            return tables.load(session_id, collection)

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
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
        """Give up-to-date tables to one thread at a time."""


class MemoryStore(TableStore):
    """Keeps sessions as long as this object lives: for tests, one-shot collections and short-lived agents."""

    url = "memory:"
    reports: tuple[StoreReport, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self._tables = Tables()

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision."""
        prepared = prepare(session_id, writes)
        with self._lock:
            found = self._tables.check(session_id, expect)
            return self._tables.apply(session_id, prepared, utc_now()) if prepared else found

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        with self._lock:
            self._tables.sessions.pop(session_id, None)

    def close(self) -> None:
        """Do nothing: there are no files."""

    @contextmanager
    def _current(self) -> Iterator[Tables]:
        with self._lock:
            yield self._tables
