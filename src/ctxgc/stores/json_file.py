"""The readable file of the json store: S0's `{"segments": [...]}`, and the rest of the sessions.

Every document is on a line of its own, so that one damaged line costs one document: of a damaged file, the
lines that still parse are salvaged and the rest is counted. A segment carries its `session_id` and, if it
differs from its `segment_id`, its `key`; a plain S0 file without them is _read into the session `default`.
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

from ctxgc.stores.base import (
    COLLECTIONS,
    CollectionName,
    StoreReport,
    decode,
    encode,
    is_utf8,
    too_new,
)
from ctxgc.stores.tables import SessionTable, Tables

VERSION = 2
_DEFAULT_SESSION = "default"
_OTHERS = tuple(name for name in COLLECTIONS if name != "segments")

_TOP = {"version", "generation", "segments", "sessions", "checksum"}
_HEAD = {"revision", "created_at", "updated_at"}
_OWN_KEYS = ("session_id", "key", "doc")
_DECODER = json.JSONDecoder()
_MOST_TRIES = 1_000
_FRAME = {"", "{", "}", "]", "],", "},", '"sessions": {', '"segments": ['}
_CHECKSUM = re.compile(rb',\n"checksum": "([0-9a-f]{8})"\n}\n\Z')


class JsonContents(msgspec.Struct):
    """What a file holds; `report` says what is wrong with it, if anything."""

    tables: Tables
    generation: int = 0
    report: StoreReport | None = None


def render(tables: Tables, generation: int) -> bytes:
    """Return the bytes of the file."""
    # Piece by piece: a call that copies the whole file as text keeps every other thread waiting.
    head = f'{{\n"version": {VERSION},\n"generation": {generation},\n"segments": [\n'
    segments = b",\n".join([line.encode() for line in _segments(tables)])
    sessions = b",\n".join([_session(table).encode() for table in tables.sessions.values()])
    data = b"".join([head.encode(), segments, b'\n],\n"sessions": {\n', sessions, b"\n}"])
    return data + f',\n"checksum": "{zlib.crc32(data):08x}"\n}}\n'.encode()


def parse(path: Path, data: bytes, now: datetime) -> JsonContents:
    """Return what the bytes of a file hold; of a damaged file, what can be saved and a report.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    if not data:
        return JsonContents(Tables(), report=StoreReport(kind="edited", message=f"{path} is empty"))
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        return _salvage(path, data.decode("utf-8", "replace"), now, str(error))
    if not isinstance(whole, dict) or not isinstance(whole.get("segments", []), list):
        return _salvage(path, data.decode(), now, "it has no list of segments")
    contents = _read(path, whole, now)
    if contents.report is None and not _is_as_written(data, whole):
        message = f"{path} is not as ctxgc wrote it; it was _read as it is"
        contents.report = StoreReport(kind="edited", message=message)
    return contents


def _read(path: Path, whole: dict[str, Any], now: datetime) -> JsonContents:
    """Return what a parsed file holds; entries that are not documents are counted in the report.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    _check_version(path, whole.get("version", VERSION))
    contents, lost = JsonContents(Tables(), _number(whole.get("generation"), 0)), 0
    for segment in whole.get("segments", []):
        lost += not _add_segment(contents.tables, segment, now)
    for session_id, saved in _object(whole.get("sessions")).items():
        lost += not _add_session(contents.tables, session_id, saved, now)
    if "generation" in whole:
        lost += len(whole.keys() ^ _TOP)
    if lost:
        message = f"{lost} entries of {path} are not documents as ctxgc wrote them"
        contents.report = StoreReport(kind="damaged", message=message, lost=lost)
    return contents


def _is_as_written(data: bytes, whole: dict[str, Any]) -> bool:
    """Return whether the bytes of a file match its checksum; one of another program has none."""
    match = _CHECKSUM.search(data)
    if match is None:
        return "generation" not in whole
    return int(match[1], 16) == zlib.crc32(data[: match.start()])


def _add_segment(tables: Tables, segment: object, now: datetime) -> bool:
    """Put a segment entry into its session; return False if it is not a segment."""
    if not isinstance(segment, dict):
        return False
    doc = dict(segment)
    session_id = doc.pop("session_id", _DEFAULT_SESSION)
    key = doc.pop("key", None) or doc.get("segment_id") or f"segment-{tables.order + 1}"
    if doc.keys() == {"doc"}:
        doc = doc["doc"]
    if not isinstance(session_id, str) or not isinstance(key, str):
        return False
    table = tables.table(session_id, now)
    table.revision = max(table.revision, 1)
    return tables.restore(table, "segments", key, doc)


def _add_head(
    tables: Tables, session_id: str, saved: dict[str, Any], now: datetime
) -> SessionTable:
    """Restore what a file says about a session itself."""
    table = tables.table(session_id, now)
    table.revision = max(_number(saved.get("revision"), 1), 1)
    table.created_at = _time(saved.get("created_at"), now)
    table.updated_at = _time(saved.get("updated_at"), now)
    return table


def _add_session(tables: Tables, session_id: str, saved: object, now: datetime) -> bool:
    if not isinstance(saved, dict) or not session_id:
        return False
    table = _add_head(tables, session_id, saved, now)
    good = [
        tables.restore(table, name, key, doc)
        for name in _OTHERS
        for key, doc in _object(saved.get(name)).items()
    ]
    # A collection under another name would be lost without a word.
    return all(good) and (saved.keys() == {*_HEAD, *_OTHERS} or not saved.keys() >= _HEAD)


def _segments(tables: Tables) -> Iterator[str]:
    """Yield one line per segment, over all sessions in the order of insertion."""
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
    for name in _OTHERS:
        docs = [f"{_quoted(key)}: {text}" for key, text in table.docs[name].items()]
        lines.append(f'"{name}": {{\n' + ",\n".join(docs) + "\n}")
    return ",\n".join(lines) + "\n}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=not is_utf8(name))


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, int) or version > VERSION:
        raise too_new(path, version, VERSION)


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


# -- Salvage


def _salvage(path: Path, text: str, now: datetime, why: str) -> JsonContents:
    rescue = _Rescue(now)
    if '\n"generation": ' in text[:200]:
        for line in text.split("\n"):
            rescue.line(line.strip())
    else:
        rescue.scan(text)
    saved = sum(sum(info.counts.values()) for info in rescue.tables.infos())
    report = StoreReport(
        kind="damaged",
        message=f"{path} cannot be _read ({why}): {saved} documents saved, {rescue.lost} pieces lost",
        saved=saved,
        lost=rescue.lost,
    )
    return JsonContents(rescue.tables, rescue.generation, report)


class _Rescue:
    """Gathers documents from single lines, in the session and collection that the lines before opened."""

    def __init__(self, now: datetime) -> None:
        self.tables = Tables()
        self.generation = 0
        self.lost = 0
        self._now = now
        self._table: SessionTable | None = None
        self._collection: CollectionName | None = None

    def line(self, line: str) -> None:
        """Restore one line of our own format."""
        if line in _FRAME or self._is_header(line):
            return
        text = line.removesuffix(",")
        if text.startswith('{"session_id"'):
            self.lost += not _add_segment(self.tables, _loads(text), self._now)
        else:
            self.lost += not self._document(text)

    def scan(self, text: str) -> None:
        """Restore every object with a text from a file that another program wrote."""
        place, tries = text.find("{", text.find("[") + 1), 0
        while place >= 0 and tries < _MOST_TRIES:
            try:
                found, end = _DECODER.raw_decode(text, place)
            except (ValueError, RecursionError):
                end, tries = place + 1, tries + 1
            else:
                if "text" in found:
                    _add_segment(self.tables, found, self._now)
            place = text.find("{", end)
        self.lost += tries

    def _is_header(self, line: str) -> bool:
        name = line.partition('": {')[0].removeprefix('"')
        if line.endswith('": {') and name in COLLECTIONS:
            self._collection = name
            return True
        if line.startswith('"generation": '):
            number = line.removeprefix('"generation": ').removesuffix(",")
            self.generation = int(number) if number.isdecimal() else 0
            return True
        return line.startswith(('"version": ', '"checksum": ')) or self._is_session(line)

    def _is_session(self, line: str) -> bool:
        if '": {"revision":' not in line:
            return False
        for session_id, saved in (_loads(f"{{{line.removesuffix(',')}}}}}") or {}).items():
            self._table = _add_head(self.tables, session_id, saved, self._now)
            self._collection = None
            return True
        return False

    def _document(self, text: str) -> bool:
        found = _loads(f"{{{text}}}")
        if not found or len(found) != 1 or self._table is None or self._collection is None:
            return False
        key, doc = next(iter(found.items()))
        return self.tables.restore(self._table, self._collection, key, doc)


def _loads(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
