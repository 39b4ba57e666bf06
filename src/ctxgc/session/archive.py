"""The archive: a session in its store, so that a restarted process goes on where this one was.

A message is written once, as it came in. What became of it since is in a small document next to it: that it
left the view, or what the view shows in its place. `Stash` knows the handles under which segments are found.
"""

from __future__ import annotations

import re
import secrets
from base64 import b32encode
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.collector import GCResult, Segmenter
from ctxgc.core import (
    SEGMENT_FIELDS,
    ContextSegment,
    Heap,
    Message,
    put_away,
    segment_from_dict,
    segment_to_dict,
    without_strays,
)
from ctxgc.errors import (
    CtxgcError,
    InputError,
    StoreDamagedError,
    StoreError,
    UnknownHandleError,
)
from ctxgc.session.agreement import (
    LEGACY_KEY,
    SERVER_KEY,
    agree,
    result_of_context,
    server_doc,
)
from ctxgc.session.documents import (
    GONE,
    SHOWN,
    Docs,
    Pending,
    StoredParts,
    is_arrival,
    message_from_doc,
    message_to_doc,
)
from ctxgc.session.state import Accounting, SessionState
from ctxgc.session.view import Arrival, BoundThinking, Kept, Original, StoredMessage, View
from ctxgc.stores import CENSUS, CollectionName, Drop, Put, Store, Write

# -- The stash of a session: the handles of its segments, and how to read what they name


SEARCH_HINT = "search(query) finds what was moved out"
_LINES_AROUND = 2


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a search found; `handle` recalls it, also when it never left the view."""

    handle: str
    score: float
    text: str
    segment: ContextSegment


class Stash:
    """Gives every segment its handle: short, stable, and impossible to guess from outside."""

    def __init__(self, heap: Heap, secret: bytes | None = None) -> None:
        self.secret = secret if secret is not None else secrets.token_bytes(16)
        self._heap = heap
        self._by_handle: dict[str, str] = {}
        self._handles: dict[str, str] = {}

    def handle(self, segment_id: str) -> str:
        """Return the handle of a segment, which never changes."""
        known = self._handles.get(segment_id)
        if known is not None:
            return known
        mixed = blake2b(
            segment_id.encode("utf-8", "surrogatepass"), key=self.secret, digest_size=10
        )
        handle = f"h-{b32encode(mixed.digest()).decode().lower()}"
        self._handles[segment_id] = handle
        self._by_handle[handle] = segment_id
        return handle

    def recall_handle(self, segment_id: str) -> str:
        """Return the handle that recalls a segment; a stand-in has the handle of its original."""
        segment = self._heap.peek(segment_id)
        original = segment.derived_from if segment is not None else None
        return self.handle(segment_id if original is None else original)

    def find(self, handle: str, hint: str = SEARCH_HINT) -> ContextSegment:
        """Return the segment with a handle, an id or a name.

        Raises:
            InputError: it is not a text.
            UnknownHandleError: there is none; `hint` says where to find the right one.
        """
        if not isinstance(handle, str):
            raise InputError(
                f"a handle must be a text, got {type(handle).__name__}", hint=hint, field="handle"
            )
        segment = self._heap.peek(self._by_handle.get(handle, handle))
        if segment is None:
            segment = self._by_name(handle)
        if segment is None:
            raise UnknownHandleError(
                f"no segment with the handle '{handle}'", hint=hint, handle=handle
            )
        return segment

    def learn(self, segment_ids: list[str]) -> None:
        """Derive the handles of these segments, after a restart."""
        for segment_id in segment_ids:
            self.handle(segment_id)

    def _by_name(self, handle: str) -> ContextSegment | None:
        if handle.startswith("h-"):
            for segment in self._heap:
                if self.handle(segment.segment_id) == handle:
                    return segment
            return None
        return next((s for s in reversed(list(self._heap)) if s.name == handle), None)


def excerpt(text: str, *, lines: tuple[int, int] | None = None, pattern: str | None = None) -> str:
    """Return a part of a text: a range of its lines (from 1), or those around a literal pattern."""
    rows = text.split("\n")
    if lines is not None:
        first, last = lines
        if first < 1 or last < first:
            raise InputError(
                f"lines cannot be {lines}", hint="(first, last), from 1", field="lines"
            )
        return "\n".join(rows[first - 1 : last])
    if pattern is None:
        return text
    found = [n for n, row in enumerate(rows) if re.search(re.escape(pattern), row, re.IGNORECASE)]
    wanted = {
        near
        for n in found
        for near in range(max(0, n - _LINES_AROUND), min(len(rows), n + _LINES_AROUND + 1))
    }
    return "\n".join(rows[n] for n in sorted(wanted))


# -- Collections


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What one collection did to the view: messages as they were, and the ids that it added.

    `places` has those of the notices that left, which are stored nowhere else; `alongside` the source and the
    key of each schema and text that is sent no longer.
    """

    number: int
    before: tuple[Kept, ...]
    added: tuple[str, ...]
    places: dict[str, float]
    alongside: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The key of the collection's document."""
        return f"{self.number:06d}"

    def without(self, message_ids: Collection[str]) -> Applied:
        """Return the record as if these messages had had no part in the collection."""
        rest = tuple(m for m in self.before if m.message_id not in message_ids)
        return replace(self, before=rest)

    def to_doc(self, edited: Container[str]) -> dict[str, Any]:
        """Return the record as a document; messages that are stored as they were are only named.

        Args:
            edited: ids of the messages that were not in the view as they came in.
        """
        before = [
            message_to_doc(m)
            if isinstance(m, Message) and (m.message_id in edited or m.origin == "gc_notice")
            else {"message_id": m.message_id}
            for m in self.before
        ]
        return {
            "before": before,
            "added": list(self.added),
            "places": dict(self.places),
            "alongside": [list(each) for each in self.alongside],
        }

    @classmethod
    def from_doc(cls, number: int, doc: Mapping[str, Any], arrived: Mapping[str, Kept]) -> Applied:
        """Return the record that a document holds; messages deleted since are left out."""
        before = (
            message_from_doc(each) if "format" in each else arrived.get(each["message_id"])
            for each in doc["before"]
        )
        return cls(
            number=number,
            before=tuple(message for message in before if message is not None),
            added=tuple(doc["added"]),
            places=doc["places"],
            alongside=tuple((source, key) for source, key in doc.get("alongside", ())),
        )


@dataclass
class CollectionLog:
    """All collections of a session: their results, and the records of those that can be undone."""

    results: list[GCResult] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)

    @property
    def next_key(self) -> str:
        """The key of the next result's document."""
        return f"{len(self.results) + 1:06d}"

    def forget(self, message_ids: Collection[str]) -> None:
        """Let an undo bring none of these messages back."""
        self.applied = [record.without(message_ids) for record in self.applied]


# -- The archive


_COUNTED: tuple[CollectionName, ...] = ("segments", "messages", "collections", "checkpoints")


class Archive:
    """Writes a session to its store, and reads it back."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        *,
        state: SessionState,
        view: View,
        heap: Heap,
        segmenter: Segmenter,
        stash: Stash,
        accounting: Accounting,
        thinking: BoundThinking,
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.revision = store.revision(session_id)
        self._state = state
        self._view = view
        self._heap = heap
        self._segmenter = segmenter
        self._stash = stash
        self._accounting = accounting
        self._thinking = thinking
        self._pending: Pending = {}
        self._stored_parts = StoredParts(store, session_id, self._pending)
        self._unsaved: dict[str, None] = {}
        self._headers: dict[str, ContextSegment] = {}
        self.is_counted = False
        """Whether the store says how many documents the session has; older versions did not."""
        self.missing: list[str] = []
        """What the store should have of this session and has not, in words."""
        self._keys: dict[CollectionName, set[str]] = {name: set() for name in _COUNTED}
        self._leaving: list[str] = []
        """Segments that were just stored as stashed: from the next commit on, their texts are only there."""
        self._written: Docs = {}

    @property
    def is_known(self) -> bool:
        """Whether the store holds this session already."""
        return self.revision > 0

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in, or was changed by hand, that the store does not hold yet."""
        return bool(self._pending or self._unsaved)

    # -- writing ------------------------------------------------------------------------------------

    def later(self, *writes: Write) -> None:
        """Write these with the next commit; a later write of the same document wins."""
        for write in writes:
            self._pending[write.collection, write.key] = write

    def note_unsaved(self, segment_ids: Iterable[str]) -> None:
        """Write these segments with the next save."""
        self._unsaved.update(dict.fromkeys(segment_ids))

    def scrubbed_records(self, log: CollectionLog, forgotten: Container[str]) -> Iterator[Write]:
        """Yield the records of collections as they are stored once an undo forgets some messages."""
        for record in log.applied:
            if any(message.message_id in forgotten for message in record.before):
                doc = self.store.get(self.session_id, "collections", record.key) or {}
                rest = [each for each in doc["before"] if each["message_id"] not in forgotten]
                yield Put("collections", record.key, {**doc, "before": rest})

    def commit(self, *more: Write) -> None:
        """Write all that is pending and these, durably and in one piece.

        Raises:
            StoreError: nothing was written; what was pending still is.
        """
        self._put_away_texts()
        writes = dict(self._pending)
        writes.update({(write.collection, write.key): write for write in more})
        if writes:
            batch = self._with_census(writes)
            self.revision = self.store.commit(self.session_id, batch, expect=self.revision)
            self._pending.clear()
            self._note_written(batch)
            self._leaving = [
                write.key
                for write in batch
                if isinstance(write, Put)
                and write.collection == "segments"
                and write.doc["tier"] == "stashed"
            ]

    def _with_census(self, writes: Mapping[tuple[CollectionName, str], Write]) -> list[Write]:
        """Return a batch that also says how many documents there are once it is written."""
        census: dict[str, int] = {name: len(keys) for name, keys in self._keys.items()}
        for write in writes.values():
            known = self._keys.get(write.collection)
            if known is not None:
                is_known, is_put = write.key in known, isinstance(write, Put)
                census[write.collection] += (is_put and not is_known) - (is_known and not is_put)
        batch = list(writes.values())
        if self._written.get(CENSUS) != census:
            batch.append(Put("state", CENSUS, census))
        return batch

    def _note_written(self, batch: Iterable[Write]) -> None:
        for write in batch:
            known = self._keys.get(write.collection)
            if known is not None:
                (known.add if isinstance(write, Put) else known.discard)(write.key)
            elif write.key == CENSUS and isinstance(write, Put):
                self._written[CENSUS] = write.doc

    def save(self) -> None:
        """Make everything durable that came in or was changed by hand since the last time."""
        self.note_changes()
        self.commit()

    def save_all(self) -> None:
        """Make everything durable, every header included."""
        self._note_segments(self._heap)
        self._note_doc("common", {"names": self._heap.mentions.common()})
        self.save()

    def note_changes(self) -> None:
        """Write with the next commit what came in or was changed by hand since the last one."""
        self.note_state()
        self._note_segments([s for s in map(self._heap.peek, self._unsaved) if s is not None])
        self._unsaved.clear()

    def note_state(self) -> None:
        """Write the state with the next commit, if it changed."""
        self._note_doc("session", self.state_doc())

    def state_doc(self) -> dict[str, Any]:
        """Return the state as a document, with what the other parts count themselves."""
        state, recent = self._state, self._heap.root_index
        state.context_limit = self._accounting.budget.context_limit
        state.numbered = self._segmenter.numbered
        state.step = self._heap.step
        state.opened = list(recent.opened)
        state.first_request = recent.first_request
        state.beside = self._accounting.alongside.to_docs()
        return state.to_doc()

    def arrival(self, message: Message, place: float | None = None) -> Put:
        """Return the write of a message as it came in, with its place, its age and how it came in."""
        facts = self.arrival_facts(message.message_id, place)
        return Put("messages", message.message_id, {**message_to_doc(message), **facts})

    def arrival_facts(self, message_id: str, place: float | None = None) -> dict[str, Any]:
        """Return what is stored with a message: its place, its age, and how it came in."""
        where = self._view.place_of(message_id) if place is None else place
        found: dict[str, Any] = {"place": where, "born": self._accounting.birth(message_id)}
        behind = self._thinking.behind.get(message_id)
        if behind is not None:
            found["behind"] = behind
        if message_id in self._accounting.makers:
            found["created_by"] = self._accounting.makers[message_id]
        known = self._view.arrival_of(message_id)
        if known is not None:
            number = self._view.number_of(message_id)
            found |= {"number": number, "digest": known.digest.hex(), "request": known.request}
        return found

    def segment(self, segment: ContextSegment) -> Put:
        """Return the write of a segment with its handle."""
        doc = segment_to_dict(segment)
        doc["handle"] = self._stash.recall_handle(segment.segment_id)
        return Put("segments", segment.segment_id, doc, flat=True)

    def changed_segment(self, segment: ContextSegment) -> Put:
        """Return the write of a segment, which then counts as written."""
        self._headers[segment.segment_id] = segment
        return self.segment(segment)

    def drop_segment(self, segment_id: str) -> None:
        """Forget a deleted segment."""
        self._headers.pop(segment_id, None)
        self.later(Drop("segments", segment_id))

    # -- what is kept in the store only -------------------------------------------------------------

    def put_away(self, original: Original) -> Original:
        """Return a stored original without its message in memory."""
        return replace(original, kept=self._stored(original.message_id))

    def lighter(self, record: Applied) -> Applied:
        """Return a record without those messages in memory that are in the view as they came in."""
        edited = self._view.originals
        before = (
            m if m.origin == "gc_notice" or m.message_id in edited else self._stored(m.message_id)
            for m in record.before
        )
        return replace(record, before=tuple(before))

    def _stored(self, message_id: str) -> StoredMessage:
        return StoredMessage(message_id, self._stored_parts.message)

    def _put_away_texts(self) -> None:
        """Keep only the headers of the segments that the last commit stored as stashed."""
        for segment_id in self._leaving:
            segment, header = self._heap.peek(segment_id), self._headers.get(segment_id)
            if segment is not None and header is not None and segment.tier == "stashed":
                self._heap.put_away(segment_id, self._stored_parts.text)
                put_away(header, self._stored_parts.text)
        self._leaving = []

    def _note_segments(self, segments: Iterable[ContextSegment]) -> None:
        """Write the segments whose header changed since they were last written."""
        for segment in segments:
            if self._headers.get(segment.segment_id) != segment:
                self.later(self.changed_segment(copy(segment)))

    def _note_doc(self, key: str, doc: dict[str, Any]) -> None:
        """Write a document of state, unless it is what was last written."""
        if self._written.get(key) != doc:
            self._written[key] = doc
            self.later(Put("state", key, doc))

    # -- reading ------------------------------------------------------------------------------------

    def load(self, log: CollectionLog) -> None:
        """Fill the parts of a new session with what the store holds; its state was read before.

        `missing` says afterwards what should be there and is not.

        Raises:
            StoreDamagedError: what is there does not make a session.
        """
        try:
            self._load(log)
            self._load_counted("checkpoints")
            self._count_missing()
        except StoreError:
            raise
        except (CtxgcError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise StoreDamagedError(
                f"the session '{self.session_id}' cannot be put together: {error}",
                hint="restore the store from a copy; ctxgc stash export writes what is there",
                session_id=self.session_id,
            ) from error

    def _load_counted(self, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        found = self.store.load(self.session_id, collection)
        self._keys[collection] = {key for key, _ in found}
        return found

    def _count_missing(self) -> None:
        """Compare what was read with the census of the last commit."""
        census = self.store.get(self.session_id, "state", CENSUS)
        state = self.store.get(self.session_id, "state", "session")
        is_served = self.store.get(self.session_id, "state", SERVER_KEY) is not None
        # Older versions stored no census, and S0's files have no state; but where messages are, there is one.
        if state is None and not is_served and (census is not None or self._keys["messages"]):
            self.missing.append("the state of the session")
        if census is None:
            return
        self.is_counted = True
        for name, keys in self._keys.items():
            short = census.get(name, 0) - len(keys)
            if short > 0:
                self.missing.append(f"{short} {name}")
        # What another writer added is there, too.
        self._written[CENSUS] = census

    def _load(self, log: CollectionLog) -> None:
        segments = self._load_segments()
        docs: Docs = dict(self._load_counted("messages"))
        legacy = self.store.get(self.session_id, "state", LEGACY_KEY)
        if legacy is not None:
            segments, docs = self._agreed(segments, docs)
            is_own = self.store.get(self.session_id, "state", "session") is None
            self.later(Put("state", SERVER_KEY, server_doc(legacy, is_own=is_own)))
            self.later(Drop("state", LEGACY_KEY))
        self._load_heap(segments)
        came_in = [key for key, doc in docs.items() if is_arrival(key, doc)]
        self._load_view(docs, came_in)
        self._load_log(log, came_in)
        self._load_accounting(docs)

    def _agreed(
        self, segments: list[ContextSegment], docs: Docs
    ) -> tuple[list[ContextSegment], Docs]:
        """Return what agrees after an older server wrote; the difference is written with the next commit."""
        made = agree(segments, docs)
        self.note_unsaved(sorted(made.changed_segments))
        for key in sorted(made.changed_docs):
            doc = made.docs.get(key)
            flat = key.startswith((GONE, SHOWN))
            known = Drop("messages", key) if doc is None else Put("messages", key, doc, flat=flat)
            self.later(known)
        return list(made.segments.values()), made.docs

    def _load_heap(self, segments: list[ContextSegment]) -> None:
        heap, state = self._heap, self._state
        common = self.store.get(self.session_id, "state", "common") or {}
        heap.mentions.restate_common(common.get("names", ()))
        known = {segment.segment_id for segment in segments}
        heap.rebuild([without_strays(segment, known) for segment in segments])
        heap.step = max(state.step, heap.step)
        heap.root_index.opened.update(dict.fromkeys(state.opened))
        if state.first_request is not None:
            heap.root_index.first_request = state.first_request
        numbers = [_number(segment) for segment in segments]
        self._segmenter.numbered = max(*numbers, state.numbered, 0)
        self._stash.learn([segment.segment_id for segment in segments])
        for call in map(heap.get, heap.bonds.open_calls()):
            self._segmenter.reopen(call)
        self._leaving = list(heap.index.stashed)
        self._put_away_texts()

    def _load_segments(self) -> list[ContextSegment]:
        """Return all segments as they were last written."""
        found = []
        for _, doc in self._load_counted("segments"):
            segment = segment_from_dict({k: v for k, v in doc.items() if k in SEGMENT_FIELDS})
            self._headers[segment.segment_id] = copy(segment)
            found.append(segment)
        return found

    def _load_view(self, docs: Docs, came_in: Sequence[str]) -> None:
        view = self._view
        view.originals = dict(self._originals(docs, came_in))
        shown = [
            message_from_doc(docs.get(f"{SHOWN}{i}") or docs[i])
            for i in came_in
            if f"{GONE}{i}" not in docs
        ]
        places = {key: doc["place"] for key, doc in docs.items() if "place" in doc}
        view.restate(_arrivals(docs, self._state.requests))
        view.next_place = max(places.values(), default=-1.0) // 1 + 1.0
        view.show(sorted(shown, key=lambda m: places[m.message_id]), places)

    def _originals(self, docs: Docs, came_in: Sequence[str]) -> Iterator[tuple[str, Original]]:
        for message_id in came_in:
            doc = docs.get(f"{GONE}{message_id}") or docs.get(f"{SHOWN}{message_id}")
            if doc is not None:
                ids, together = tuple(doc["segment_ids"]), tuple(doc["together"])
                kept = self._stored(message_id)
                yield message_id, Original(kept=kept, segment_ids=ids, together=together)

    def _load_log(self, log: CollectionLog, came_in: Sequence[str]) -> None:
        arrived = {message_id: self._stored(message_id) for message_id in came_in}
        for key, doc in sorted(self._load_counted("collections")):
            if "result" not in doc:
                log.results.append(result_of_context(doc))
                continue
            described = {k: v for k, v in doc["result"].items() if k != "tokens_freed"}
            log.results.append(GCResult.from_dict(described))
            if "before" in doc:
                log.applied.append(Applied.from_doc(int(key), doc, arrived))
                self._view.remember_places(doc["places"])

    def _load_accounting(self, docs: Docs) -> None:
        accounting, segmenter = self._accounting, self._segmenter
        accounting.alongside.restore(self._state.beside)
        self._thinking.behind = {key: doc["behind"] for key, doc in docs.items() if "behind" in doc}
        accounting.born = {key: doc["born"] for key, doc in docs.items() if "born" in doc}
        accounting.makers = {k: doc["created_by"] for k, doc in docs.items() if "created_by" in doc}
        by_message: dict[str, list[ContextSegment]] = {}
        for segment in self._heap.working():
            by_message.setdefault(segment.message_id or "", []).append(segment)
        for message in self._view.messages:
            segments = by_message.get(message.message_id, [])
            if len(segments) == len(message.parts):
                ids = tuple(s.segment_id for s in sorted(segments, key=lambda s: s.position))
                segmenter.adopt(message.message_id, ids)
            else:
                segmenter.take(message)
            accounting.enter(message)


def _number(segment: ContextSegment) -> int:
    prefix, _, number = segment.segment_id.rpartition("-")
    return int(number) if prefix == "s" and number.isdigit() else 0


def _arrivals(docs: Docs, requests: int) -> list[Arrival]:
    numbered = [
        (
            doc["number"],
            Arrival(key, bytes.fromhex(doc["digest"]), doc.get("request", requests)),
        )
        for key, doc in docs.items()
        if "digest" in doc
    ]
    return [arrival for _, arrival in sorted(numbered, key=itemgetter(0))]
