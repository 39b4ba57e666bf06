"""Documents as JSON text, and the checks that every store makes before it writes.

The text is always valid UTF-8: lone surrogates are escaped, as NUL always is, so that files, SQLite
and Postgres can hold whatever a model or tool outputs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import InputError, StoreDamagedError, StoreVersionError
from ctxgc.stores.base import COLLECTIONS, CollectionName, Put, Write

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
    return Prepared(collection, key, encode(doc) if text is None else text, doc)


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
