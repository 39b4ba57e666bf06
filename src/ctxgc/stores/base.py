"""The protocol of every store, and the checks and the JSON that all stores share.

A document is a JSON object under a key, in one of six collections of a session. A commit writes a
batch of them: all or nothing, and on disk before it returns.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import msgspec

from ctxgc.errors import InputError, StoreBusyError, StoreDamagedError, StoreVersionError

CollectionName = Literal["segments", "messages", "checkpoints", "collections", "events", "state"]
COLLECTIONS: tuple[CollectionName, ...] = get_args(CollectionName)

CENSUS = "census"
"""The key in `state` under which a session says how many documents it has."""


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
    names: tuple[str, ...] = ()
    """What was lost, as far as its names could be read."""


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


# -- Documents as JSON text, and the checks that every store makes before it writes


MOST_NAME_BYTES = 2_000

# No character takes more than twelve bytes.
_SHORT_NAME = MOST_NAME_BYTES // 12

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_FLAT_ENCODER = msgspec.json.Encoder()


class Prepared(msgspec.Struct, frozen=True):
    """A checked write: `text` is the document, or None to drop it."""

    collection: CollectionName
    key: str
    text: str | None
    doc: dict[str, Any] | None


def prepare(session_id: str, writes: Sequence[Write]) -> list[Prepared]:
    """Return the writes with their documents as text.

    Raises:
        InputError: one of them cannot be stored.
    """
    check_name("session_id", session_id)
    return [_prepare(write) for write in writes]


def _prepare(write: Write) -> Prepared:
    collection, key = write.collection, write.key
    name: object = key
    # Thousands are written at once; nearly all need no closer look.
    if collection not in COLLECTIONS:
        check_collection(collection)
    if not isinstance(name, str) or not 0 < len(name) < _SHORT_NAME:
        check_name("key", name)
    if not isinstance(write, Put):
        return Prepared(collection, key, None, None)
    doc = write.doc
    text = _flat_text(doc) if write.flat and isinstance(doc, dict) else None
    text = encode(doc) if text is None else text
    if DIGEST in doc:
        raise InputError(f"a document cannot have the key {DIGEST!r}", field="doc")
    return Prepared(collection, key, sealed(collection, key, text), doc)


def check_name(field: str, name: object) -> None:
    """Raise InputError unless a session id or a key can be stored."""
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{field} must be a non-empty string, got {name!r}",
            hint="pass a non-empty string",
            field=field,
        )
    if len(name) >= _SHORT_NAME and len(escape(name)) > MOST_NAME_BYTES:
        raise InputError(
            f"{field} is too long: {name[:40]!r}...",
            hint=f"use at most {MOST_NAME_BYTES} bytes",
            field=field,
        )


def check_collection(collection: object) -> None:
    """Raise InputError unless a collection of this name exists."""
    if collection not in COLLECTIONS:
        raise InputError(
            f"there is no collection {collection!r}",
            hint=f"use one of: {', '.join(COLLECTIONS)}",
            field="collection",
        )


def escape(name: str) -> str:
    """Return a name in ASCII without control characters; different names stay different."""
    return json.dumps(name)[1:-1]


def unescape(text: str) -> str:
    """Return the name that `escape` was given."""
    return str(json.loads(f'"{text}"')) if "\\" in text else text


def encode(doc: dict[str, Any], *, flat: bool = False) -> str:
    """Return a document as JSON text on one line; `flat` (see `Put`) does not change the text.

    Raises:
        InputError: it is not a JSON object, or nests too deeply.
    """
    if not isinstance(doc, dict):
        raise InputError(f"a document must be a JSON object, got {type(doc).__name__}", field="doc")
    if flat and (quick := _flat_text(doc)) is not None:
        return quick
    try:
        text = _ENCODER.encode(doc)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"a document cannot be stored: {error}", hint="use JSON values only", field="doc"
        ) from None
    return text if is_utf8(text) else json.dumps(doc, separators=(",", ":"))


def _flat_text(doc: dict[str, Any]) -> str | None:
    """Return a flat document as text; None for one with lone surrogates or numbers beyond 64 bits."""
    try:
        return _FLAT_ENCODER.encode(doc).decode()
    except (ValueError, OverflowError):
        return None


def decode(text: str | bytes) -> dict[str, Any]:
    """Return the document of a JSON text.

    Raises:
        StoreDamagedError: this is not what `encode` wrote.
    """
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreDamagedError(f"a stored document cannot be read: {error}") from None
    if not isinstance(doc, dict):
        raise StoreDamagedError(f"a stored document is not an object, but {type(doc).__name__}")
    return doc


# -- Digests: every stored document carries one, so that a changed byte is noticed when it is read


DIGEST = "~crc"
_TAIL = len(f',"{DIGEST}":"00000000"}}')


def sealed(collection: CollectionName, key: str, text: str) -> str:
    """Return the text of a document with its digest, which covers the place that it is stored at too."""
    comma = "," if len(text) > len("{}") else ""
    return f'{text[:-1]}{comma}"{DIGEST}":"{_digest(collection, key, text)}"}}'


def opened(collection: CollectionName, key: str, text: object) -> dict[str, Any]:
    """Return the document of a stored text, without its digest; documents of old versions have none.

    Raises:
        StoreDamagedError: it is not what was written (`details`: collection, key).
    """
    try:
        if not isinstance(text, str):
            raise StoreDamagedError(f"it is not a text, but {type(text).__name__}")
        doc = decode(text)
        digest = doc.pop(DIGEST, None)
        if digest is not None and digest != _digest(collection, key, f"{text[:-_TAIL]}}}"):
            check_digest(collection, key, doc, digest)
    except StoreDamagedError as error:
        raise damaged_document(collection, key, error.message) from None
    return doc


def check_digest(collection: CollectionName, key: str, doc: dict[str, Any], digest: object) -> None:
    """Check a document that was perhaps laid out anew since its digest was made.

    Raises:
        StoreDamagedError: it is not what was written.
    """
    try:
        found = _digest(collection, key, encode(doc))
    except InputError:
        found = ""
    if found != digest:
        raise StoreDamagedError("its digest does not match")


def damaged_document(collection: object, key: object, why: str) -> StoreDamagedError:
    """Return the error for a document that is not what was written."""
    return StoreDamagedError(
        f"the document {key!r} in {collection} is damaged: {why}",
        hint="open the session with damaged='accept' to go on without it, or restore the store from a copy",
        collection=str(collection),
        key=str(key),
    )


def _digest(collection: str, key: str, text: str) -> str:
    data = f"{collection}\0{key}\0{text}".encode("utf-8", "surrogatepass")
    return f"{zlib.crc32(data):08x}"


def too_new(path: Path, found: object, known: int) -> StoreVersionError:
    """Return the error for a file of a newer version."""
    return StoreVersionError(
        f"{path} has version {found}, this ctxgc reads {known}",
        hint="open it with a newer ctxgc; it was left as it is",
        found=found,
        known=known,
    )


def is_utf8(text: str) -> bool:
    """Return whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_revision(session_id: str, expect: int | None, found: int) -> None:
    """Raise StoreBusyError if a commit expects another revision than the one that was found."""
    if expect is not None and expect != found:
        raise StoreBusyError(
            f"session {session_id!r} is at revision {found}, not {expect}",
            hint="load it again: another session object or process has committed to it",
            session_id=session_id,
            expected=expect,
            found=found,
        )
