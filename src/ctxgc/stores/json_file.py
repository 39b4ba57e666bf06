"""The readable file of the json store: S0's `{"segments": [...]}`, and the rest of the sessions.

Every document stands on a line of its own, so that one damaged line costs one document. A segment
carries its `session_id` and, where it differs from its `segment_id`, its `key`; a plain S0 file
without them is read into the session `default`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import StoreVersionError
from ctxgc.stores.base import COLLECTIONS, StoreReport
from ctxgc.stores.documents import decode, encode, is_utf8
from ctxgc.stores.tables import SessionTable, Tables

VERSION = 1
DEFAULT_SESSION = "default"
OTHERS = tuple(name for name in COLLECTIONS if name != "segments")

_OWN_KEYS = ("session_id", "key", "doc")
_CHECKSUM = re.compile(rb',\n"checksum": "([0-9a-f]{8})"\n}\n\Z')


class Contents(msgspec.Struct):
    """What a file holds; `report` says what is wrong with it, if anything is."""

    tables: Tables
    generation: int = 0
    report: StoreReport | None = None


def render(tables: Tables, generation: int) -> bytes:
    """Return the bytes of the file."""
    head = f'{{\n"version": {VERSION},\n"generation": {generation},\n"segments": [\n'
    body = head + ",\n".join(_segments(tables)) + '\n],\n"sessions": {\n'
    body += ",\n".join(_session(table) for table in tables.sessions.values()) + "\n}"
    data = body.encode()
    return data + f',\n"checksum": "{zlib.crc32(data):08x}"\n}}\n'.encode()


def read(path: Path, whole: dict[str, Any], now: datetime) -> Contents:
    """Return what a parsed file holds; entries that are no documents are counted in the report.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    _check_version(path, whole.get("version", VERSION))
    contents, lost = Contents(Tables(), _number(whole.get("generation"), 0)), 0
    for segment in whole.get("segments", []):
        lost += not add_segment(contents.tables, segment, now)
    for session_id, saved in _object(whole.get("sessions")).items():
        lost += not _add_session(contents.tables, session_id, saved, now)
    if lost:
        message = f"{lost} entries of {path} are no documents"
        contents.report = StoreReport(kind="damaged", message=message, lost=lost)
    return contents


def is_as_written(data: bytes) -> bool:
    """Tell whether the bytes of a file match its checksum; a file without one passes."""
    match = _CHECKSUM.search(data)
    return match is None or int(match[1], 16) == zlib.crc32(data[: match.start()])


def add_segment(tables: Tables, segment: object, now: datetime) -> bool:
    """Put a segment entry where it belongs, and tell whether it is one."""
    if not isinstance(segment, dict):
        return False
    doc = dict(segment)
    session_id = doc.pop("session_id", DEFAULT_SESSION)
    key = doc.pop("key", None) or doc.get("segment_id") or f"segment-{tables.order + 1}"
    if doc.keys() == {"doc"}:
        doc = doc["doc"]
    if not isinstance(session_id, str) or not isinstance(key, str):
        return False
    table = tables.table(session_id, now)
    table.revision = max(table.revision, 1)
    return tables.restore(table, "segments", key, doc)


def add_head(tables: Tables, session_id: str, saved: dict[str, Any], now: datetime) -> SessionTable:
    """Take over what a file says about a session itself."""
    table = tables.table(session_id, now)
    table.revision = max(_number(saved.get("revision"), 1), 1)
    table.created_at = _time(saved.get("created_at"), now)
    table.updated_at = _time(saved.get("updated_at"), now)
    return table


def _add_session(tables: Tables, session_id: str, saved: object, now: datetime) -> bool:
    if not isinstance(saved, dict) or not session_id:
        return False
    table = add_head(tables, session_id, saved, now)
    good = [
        tables.restore(table, name, key, doc)
        for name in OTHERS
        for key, doc in _object(saved.get(name)).items()
    ]
    return all(good)


def _segments(tables: Tables) -> Iterator[str]:
    """Return one line per segment, over all sessions in the order of insertion."""
    rows = [
        (order, table.session_id, key, table.docs["segments"][key])
        for table in tables.sessions.values()
        for key, order in table.orders.items()
    ]
    rows.sort()
    return (_segment(session_id, key, text) for _, session_id, key, text in rows)


def _segment(session_id: str, key: str, text: str) -> str:
    own = {"session_id": session_id, "key": key}
    doc = decode(text)
    if not doc.keys().isdisjoint(_OWN_KEYS):
        return encode({**own, "doc": doc})
    if doc.get("segment_id") == key:
        del own["key"]
    return encode({**own, **doc})


def _session(table: SessionTable) -> str:
    times = {"created_at": table.created_at.isoformat(), "updated_at": table.updated_at.isoformat()}
    head = encode({"revision": table.revision, **times})[:-1]
    lines = [f"{_quoted(table.session_id)}: {head}"]
    for name in OTHERS:
        docs = [f"{_quoted(key)}: {text}" for key, text in table.docs[name].items()]
        lines.append(f'"{name}": {{\n' + ",\n".join(docs) + "\n}")
    return ",\n".join(lines) + "\n}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=not is_utf8(name))


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int) or version > VERSION:
        raise StoreVersionError(
            f"{path} was written in version {version}, this ctxgc reads {VERSION}",
            hint="open it with a newer ctxgc; it was left as it is",
            found=version,
            known=VERSION,
        )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _time(value: object, default: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else default
    except ValueError:
        return default
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
