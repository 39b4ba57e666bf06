"""Exports: sessions as a file to take elsewhere, as JSON lines or as S0's `{"segments": [...]}`.

A file of JSON lines starts with a line that names its version and ends with one that has the number of its
documents and their digest, so that a truncated or altered file is noticed before any of it is used. The
other form is the file of a json store, with its checksum. Unless told otherwise, likely secrets are masked.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from difflib import get_close_matches
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.core import mask_secrets
from ctxgc.errors import InputError, StoreDamagedError, StoreError, StoreVersionError
from ctxgc.files import append_durable, create_private, remove, replace
from ctxgc.stores.base import (
    CENSUS,
    COLLECTIONS,
    CollectionName,
    Put,
    Store,
    decode,
    encode,
    prepare,
)
from ctxgc.stores.concurrency import consistent_read
from ctxgc.stores.json_file import parse, render
from ctxgc.stores.tables import Tables

EXPORT_VERSION = 1
UNMASKABLE: tuple[CollectionName, ...] = ("checkpoints",)
"""Their history is compressed and sealed with a digest, so it cannot be searched for secrets."""

_NEVER_MASKED: tuple[CollectionName, ...] = ("state",)
"""They hold no conversation, and a session needs every value of them."""

_HEAD = '{"ctxgc_export":'
_CHUNK = 1 << 22


class ExportEntry(msgspec.Struct, frozen=True):
    """One document with its place: the session, the collection, the key."""

    session_id: str
    collection: CollectionName
    key: str
    doc: dict[str, Any]


class ExportFile(msgspec.Struct, frozen=True):
    """What an export holds; `masked`: whether likely secrets were removed from it."""

    entries: tuple[ExportEntry, ...]
    masked: bool = False


def chosen_sessions(store: Store, session_ids: Iterable[str] | None = None) -> list[str]:
    """Return the sessions that were named, or all of a store.

    Raises:
        InputError: the store has no such session.
    """
    known = [info.session_id for info in store.sessions()]
    wanted = known if session_ids is None else list(dict.fromkeys(session_ids))
    for session_id in wanted:
        if session_id not in known:
            near = get_close_matches(session_id, known, 1)
            raise InputError(
                f"there is no session {session_id!r} in {store.url}",
                hint=f"did you mean {near[0]!r}?" if near else "list the sessions first",
                field="session_id",
            )
    return wanted


def export_entries(
    store: Store, session_ids: Iterable[str] | None = None, *, mask: bool = True
) -> Iterator[ExportEntry]:
    """Yield all documents of sessions; with `mask` without likely secrets, and without checkpoints.

    What is left out must not be missed later, so the census is left out too.
    """
    names = [name for name in COLLECTIONS if not (mask and name in UNMASKABLE)]
    for session_id in chosen_sessions(store, session_ids):
        for entry in session_documents(store, session_id, names):
            if mask and (entry.collection, entry.key) == ("state", CENSUS):
                continue
            shown = masked_document(entry.collection, entry.doc) if mask else entry.doc
            yield msgspec.structs.replace(entry, doc=shown)


def session_documents(
    store: Store, session_id: str, collections: Sequence[CollectionName] = COLLECTIONS
) -> list[ExportEntry]:
    """Return the documents of a session at one revision.

    Raises:
        StoreBusyError: someone wrote to it at every attempt.
    """
    return consistent_read(
        store,
        session_id,
        lambda: [
            ExportEntry(session_id, name, key, doc)
            for name in collections
            for key, doc in store.load(session_id, name)
        ],
    )


def session_digest(store: Store, session_id: str) -> str:
    """Return a digest of the documents of a session, in their order."""
    digest = blake2b(digest_size=32)
    for entry in session_documents(store, session_id):
        digest.update(_line(entry))
    return digest.hexdigest()


def export_lines(entries: Iterable[ExportEntry], *, masked: bool) -> Iterator[bytes]:
    """Yield the lines of an export, including head and trailer."""
    head = encode({"ctxgc_export": EXPORT_VERSION, "masked": masked}).encode() + b"\n"
    digest = blake2b(head, digest_size=32)
    yield head
    count = 0
    for entry in entries:
        line = _line(entry)
        digest.update(line)
        count += 1
        yield line
    yield _trailer(count, digest.hexdigest())


def export_json(entries: Iterable[ExportEntry], now: datetime) -> bytes:
    """Return an export as the file of a json store, which S0's readers understand too."""
    tables = Tables()
    for session_id, group in groupby(entries, key=lambda entry: entry.session_id):
        puts = [Put(entry.collection, entry.key, entry.doc) for entry in group]
        tables.apply(session_id, prepare(session_id, puts), now)
    return render(tables, 1)


def write_export(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file for this user only; until it is complete there is none, or the old one.

    Raises:
        StoreError: the disk refused.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    create_private(temporary)
    size = 0
    try:
        for chunk in _chunks(pieces):
            append_durable(temporary, chunk, size)
            size += len(chunk)
        replace(temporary, path)
    except BaseException:
        with suppress(StoreError):
            remove(temporary)
        raise


def read_export(path: Path, data: bytes, now: datetime) -> ExportFile:
    """Return what the bytes of an export hold, verified.

    Args:
        path: where they come from, for messages.
        data: the whole file, in either form.
        now: the time for sessions whose own is not in the file.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
        StoreDamagedError: it was truncated, or is not as it was written.
        InputError: it is not an export.
    """
    if data.startswith(_HEAD.encode()):
        return _read_lines(path, data)
    contents = parse(path, data, now)
    if contents.report is not None:
        raise _damaged(path, contents.report.message)
    tables = contents.tables
    entries = tuple(
        ExportEntry(session_id, name, key, doc)
        for session_id in tables.sessions
        for name in COLLECTIONS
        for key, doc in tables.load(session_id, name)
    )
    if not entries:
        raise InputError(
            f"{path} is not an export: it has no segments",
            hint="pass a file that `export` wrote, or one with a list of segments",
            field="path",
        )
    return ExportFile(entries)


def _read_lines(path: Path, data: bytes) -> ExportFile:
    head, newline, _ = data.partition(b"\n")
    if not newline:
        raise _damaged(path, "it ends within its first line")
    said = decode(head)
    _check_version(path, said.get("ctxgc_export"))
    cut = data.rfind(b"\n", 0, len(data) - 1) + 1
    body = data[:cut]
    lines = body.split(b"\n")[1:-1]
    if not data[cut:].startswith(b'{"ctxgc_end":'):
        raise _damaged(path, f"it ends after {len(lines)} documents, without its last line")
    if data[cut:] != _trailer(len(lines), blake2b(body, digest_size=32).hexdigest()):
        raise _damaged(path, "its digest does not match")
    return ExportFile(tuple(_entry(path, line) for line in lines), said.get("masked") is True)


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int) or version > EXPORT_VERSION:
        raise StoreVersionError(
            f"{path} was exported in version {version}, this ctxgc reads {EXPORT_VERSION}",
            hint="import it with a newer ctxgc; nothing was changed",
            found=version,
            known=EXPORT_VERSION,
        )


def _entry(path: Path, line: bytes) -> ExportEntry:
    try:
        return msgspec.convert(decode(line), ExportEntry)
    except msgspec.ValidationError as error:
        raise _damaged(path, f"a line is not a document: {error}") from None


def _damaged(path: Path, why: str) -> StoreDamagedError:
    return StoreDamagedError(
        f"{path} is damaged: {why}",
        hint="export again; nothing was imported",
        path=str(path),
    )


def _line(entry: ExportEntry) -> bytes:
    return encode(msgspec.structs.asdict(entry)).encode() + b"\n"


def _trailer(count: int, digest: str) -> bytes:
    return encode({"ctxgc_end": {"documents": count, "digest": digest}}).encode() + b"\n"


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces, because each chunk costs a durable write."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


# -- Masking


def masked_document(collection: CollectionName, doc: dict[str, Any]) -> dict[str, Any]:
    """Return a document in which each likely secret is replaced by the name of its rule."""
    return doc if collection in _NEVER_MASKED else _object(doc)


def _object(doc: dict[str, Any]) -> dict[str, Any]:
    is_message = "format" in doc and isinstance(doc.get("source"), str)
    return {
        key: _packed(value) if is_message and key == "source" else _value(value, str(key))
        for key, value in doc.items()
    }


def _value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return _text(value, name)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return [_value(item, name) for item in value]
    return value


def _text(text: str, name: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            inside = json.loads(text)
        except (ValueError, RecursionError):
            return mask_secrets(text)
        masked = _value(inside)
        return text if masked == inside else json.dumps(masked)
    # A rule may need the name of a value: {"api_key": "..."}.
    prefix = f"{name}: "
    masked = mask_secrets(prefix + text)
    return masked.removeprefix(prefix) if masked.startswith(prefix) else mask_secrets(text)


def _packed(source: str) -> str:
    """Mask a message that is kept as the bytes in which it came in."""
    try:
        text = base64.b64decode(source).decode()
    except (binascii.Error, UnicodeDecodeError):
        return source
    masked = _text(text, "")
    return source if masked == text else base64.b64encode(masked.encode()).decode()
