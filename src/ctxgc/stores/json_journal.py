"""The journal beside the readable file: one line per commit since the file was last written.

A line is its CRC-32 and a JSON record. The first line names the generation of the readable file
that the journal continues; one that continues another was folded into the file already.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import StoreVersionError
from ctxgc.stores.base import Collection
from ctxgc.stores.documents import Prepared, encode
from ctxgc.stores.tables import Tables

VERSION = 1


class JournalReplay(msgspec.Struct):
    """How far a journal could be read.

    `end` is the end of its last whole line, `bad` the number of damaged lines, and `torn` the number
    of bytes after the end, left by a commit that never returned.
    """

    end: int
    bad: int = 0
    torn: int = 0


def header(generation: int) -> bytes:
    """Return the first line of a journal."""
    return _line(encode({"journal": VERSION, "generation": generation}))


def commit_line(session_id: str, revision: int, now: datetime, writes: Sequence[Prepared]) -> bytes:
    """Return the line of a commit."""
    head = encode({"session": session_id, "revision": revision, "at": now.isoformat()})
    body = ",".join(_write(write) for write in writes)
    return _line(f'{head[:-1]},"writes":[{body}]}}')


def drop_line(session_id: str) -> bytes:
    """Return the line that deletes a session."""
    return _line(encode({"session": session_id, "dropped": True}))


def generation_of(path: Path, data: bytes) -> int:
    """Return which generation of the readable file a journal continues.

    One that does not say so is damaged; it counts as the newest, so that its lines are read.

    Raises:
        StoreVersionError: a newer ctxgc wrote it.
    """
    record = _record(data.partition(b"\n")[0]) or {}
    if record.get("journal", VERSION) > VERSION:
        raise StoreVersionError(
            f"{path} was written in version {record['journal']}, this ctxgc reads {VERSION}",
            hint="open it with a newer ctxgc; it was left as it is",
            found=record["journal"],
            known=VERSION,
        )
    return int(record.get("generation", sys.maxsize))


def replay(data: bytes, tables: Tables, start: int) -> JournalReplay:
    """Apply the commits of a journal from a place on."""
    *lines, rest = data[start:].split(b"\n")
    done = JournalReplay(len(data) - len(rest), torn=len(rest))
    for line in lines:
        record = _record(line)
        if record is None:
            done.bad += 1
        else:
            _apply(record, tables)
    return done


def _apply(record: dict[str, Any], tables: Tables) -> None:
    session_id = record.get("session")
    if session_id is None:
        return
    if record.get("dropped"):
        tables.sessions.pop(session_id, None)
        return
    now = datetime.fromisoformat(record["at"])
    writes = [_prepared(*write) for write in record["writes"]]
    tables.apply(session_id, writes, now)
    tables.table(session_id, now).revision = record["revision"]


def _prepared(collection: Collection, key: str, doc: dict[str, Any] | None = None) -> Prepared:
    return Prepared(collection, key, None if doc is None else encode(doc), doc)


def _write(write: Prepared) -> str:
    name = encode({"": [write.collection, write.key]})[5:-2]
    return f"[{name}]" if write.text is None else f"[{name},{write.text}]"


def _line(body: str) -> bytes:
    data = body.encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _record(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.partition(b" ")
    try:
        if len(checksum) != 8 or int(checksum, 16) != zlib.crc32(body):
            return None
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
