"""Reading a damaged json file line by line: what still parses is saved, the rest is counted."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from ctxgc.stores.base import COLLECTIONS, Collection, StoreReport
from ctxgc.stores.json_file import Contents, add_head, add_segment, is_as_written, read
from ctxgc.stores.tables import SessionTable, Tables

_DECODER = json.JSONDecoder()
_MOST_TRIES = 1_000
_FRAME = {"", "{", "}", "]", "],", "},", '"sessions": {', '"segments": ['}


def parse(path: Path, data: bytes, now: datetime) -> Contents:
    """Return what the bytes of a file say; a damaged file gives what can be saved and a report.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    if not data:
        return Contents(Tables(), report=StoreReport(kind="edited", message=f"{path} is empty"))
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        return _salvage(path, data.decode("utf-8", "replace"), now, str(error))
    if not isinstance(whole, dict) or not isinstance(whole.get("segments", []), list):
        return _salvage(path, data.decode(), now, "it has no list of segments")
    contents = read(path, whole, now)
    if contents.report is None and not is_as_written(data):
        message = f"{path} is not as ctxgc wrote it; it was read as it is"
        contents.report = StoreReport(kind="edited", message=message)
    return contents


def _salvage(path: Path, text: str, now: datetime, why: str) -> Contents:
    rescue = _Rescue(now)
    if '\n"generation": ' in text[:200]:
        for line in text.split("\n"):
            rescue.line(line.strip())
    else:
        rescue.scan(text)
    saved = sum(sum(info.counts.values()) for info in rescue.tables.infos())
    report = StoreReport(
        kind="damaged",
        message=f"{path} cannot be read ({why}): {saved} documents saved, {rescue.lost} pieces lost",
        saved=saved,
        lost=rescue.lost,
    )
    return Contents(rescue.tables, rescue.generation, report)


class _Rescue:
    """Collects what single lines say, in the frame of the session and collection around them."""

    def __init__(self, now: datetime) -> None:
        self.tables = Tables()
        self.generation = 0
        self.lost = 0
        self._now = now
        self._table: SessionTable | None = None
        self._collection: Collection | None = None

    def line(self, line: str) -> None:
        """Take over one line of our own format."""
        if line in _FRAME or self._is_header(line):
            return
        text = line.removesuffix(",")
        if text.startswith('{"session_id"'):
            self.lost += not add_segment(self.tables, _loads(text), self._now)
        else:
            self.lost += not self._document(text)

    def scan(self, text: str) -> None:
        """Take over every object with a text from a file that others wrote."""
        place, tries = text.find("{", text.find("[") + 1), 0
        while place >= 0 and tries < _MOST_TRIES:
            try:
                found, end = _DECODER.raw_decode(text, place)
            except (ValueError, RecursionError):
                end, tries = place + 1, tries + 1
            else:
                if "text" in found:
                    add_segment(self.tables, found, self._now)
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
            self._table = add_head(self.tables, session_id, saved, self._now)
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
