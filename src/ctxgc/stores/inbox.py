"""The inbox of a store: segments that a door in a hurry left beside it, durable at once.

A store indexes what it takes in, which can cost more time than a hook of a coding agent has. So the hook
leaves the segment here, one file for each, and whoever opens the store next takes it in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxgc.errors import CtxgcError, InputError, StoreBusyError, StoreError
from ctxgc.files import remove, replace, write_atomic

if TYPE_CHECKING:
    from ctxgc.stores.base import Store

SUFFIX = ".inbox"
_FILES = ("json", "sqlite")


def inbox_of(url: str) -> Path:
    """Return the folder that is the inbox of a store; a store without a file has one in the user's state.

    Raises:
        InputError: the URL is that of no store that others can open.
    """
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    if scheme in _FILES and path:
        return Path(f"{path}{SUFFIX}").absolute()
    if scheme in ("postgresql", "postgres"):
        return _state() / "ctxgc" / f"{_digest(path)}{SUFFIX}"
    raise InputError(f"the store {url!r} has no inbox", hint="name a file", field="store")


def leave(url: str, session_id: str, handle: str, document: Mapping[str, Any]) -> Path:
    """Leave a segment for a store, durably, and return the file that holds it.

    Args:
        url: the address of the store.
        session_id: whose segment it is.
        handle: what recalls it; the name of the file.
        document: the segment as JSON values, with its `segment_id`.

    Raises:
        StoreError: it could not be written; nothing is there.
    """
    entry = {"session_id": session_id, "document": {**document, "handle": handle}}
    path = inbox_of(url) / f"{handle}.json"
    write_atomic(path, json.dumps(entry).encode())
    return path


def take_in(store: Store) -> int:
    """Move all that was left for a store into it, and return how many segments came in.

    What cannot be read is set aside under `.damaged`; what the store does not take now stays for later.
    """
    try:
        files = sorted(inbox_of(store.url).glob("*.json"), key=_age)
    except (CtxgcError, OSError):
        return 0
    return sum(_take(store, path) for path in files)


def _take(store: Store, path: Path) -> bool:
    try:
        entry = json.loads(path.read_bytes())
        _put(store, entry["session_id"], entry["document"])
    except (FileNotFoundError, StoreError):
        return False
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        with suppress(StoreError):
            replace(path, path.with_suffix(".damaged"))
        return False
    with suppress(StoreError):
        remove(path)
    return True


def _put(store: Store, session_id: str, document: dict[str, Any]) -> None:
    """Write a segment once: another process may take it in at this moment, and others use it by then."""
    from ctxgc.stores.base import Put  # noqa: PLC0415

    put = Put("segments", document["segment_id"], document)
    while True:
        revision = store.revision(session_id)
        if store.get(session_id, "segments", put.key) is not None:
            return
        try:
            store.commit(session_id, [put], expect=revision)
        except StoreBusyError as error:
            if "found" not in error.details:
                raise
        else:
            return


def _age(path: Path) -> tuple[float, str]:
    with suppress(OSError):
        return path.stat().st_mtime, path.name
    return 0.0, path.name


def _state() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base) if base else Path.home() / ".local" / "state"


def _digest(address: str) -> str:
    """Name a database whoever asks: with or without user and password."""
    from hashlib import blake2b  # noqa: PLC0415 (only for stores without a file)

    place = address.rpartition("@")[2].partition("?")[0]
    return blake2b(place.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
