"""The inbox of a store: segments put next to it in a hurry, durable at once.

A store indexes what is written to it, which can take longer than a hook of a coding agent has. So the hook
puts the segment here, in a file of its own, and whoever opens the store next moves it in.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxgc.errors import CtxgcError, InputError, StoreBusyError, StoreError
from ctxgc.files import remove, replace, write_atomic
from ctxgc.places import state_folder

if TYPE_CHECKING:
    from ctxgc.stores.base import Store

_SUFFIX = ".inbox"
FILE_SCHEMES = ("json", "sqlite")
"""The kinds of stores that are a file."""


def file_of(url: str) -> Path | None:
    """Return the file that the URL of a store names; None if the store is not a file, or no file is named."""
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    return Path(path) if scheme in FILE_SCHEMES and path else None


def damage_before(store: Store) -> str | None:
    """Return what was found damaged and set aside of the file of a store, now or before; None if nothing was.

    It counts until someone moves the copies away.
    """
    for report in store.reports:
        if report.kind != "torn":
            return report.message
    file = file_of(store.url)
    if file is None:
        return None
    aside = sorted(file.absolute().parent.glob(f"{glob.escape(file.name)}.damaged-*"))
    return f"{aside[0].name} was set aside" if aside else None


def inbox_of(url: str) -> Path:
    """Return the folder of a store's inbox; for a store without a file it is in the user's state folder.

    Raises:
        InputError: no other process can open the store of this URL.
    """
    file = file_of(url)
    if file is not None:
        return Path(f"{file}{_SUFFIX}").absolute()
    scheme, _, rest = url.partition(":")
    if scheme in ("postgresql", "postgres"):
        return Path(state_folder()) / f"{_digest(rest.removeprefix('//'))}{_SUFFIX}"
    raise InputError(
        f"the store {url!r} has no inbox", hint="use a store with a file", field="store"
    )


def add_to_inbox(url: str, session_id: str, handle: str, document: Mapping[str, Any]) -> Path:
    """Put a segment into the inbox of a store, durably, and return its file.

    Args:
        url: the address of the store.
        session_id: the session of the segment.
        handle: its handle, which also names the file.
        document: the segment as JSON values, with its `segment_id`.

    Raises:
        StoreError: it could not be written; there is no file.
    """
    entry = {"session_id": session_id, "document": {**document, "handle": handle}}
    path = inbox_of(url) / f"{handle}.json"
    write_atomic(path, json.dumps(entry).encode())
    return path


def drain_inbox(store: Store) -> int:
    """Move everything in the inbox of a store into it, and return how many segments that were.

    A file that cannot be read is set aside as `.damaged`; one that the store refuses now stays for later.
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
    """Write a segment once: another process may move it in at the same moment, and the session may use it."""
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


def _digest(address: str) -> str:
    """Return a name for a database that does not depend on user and password."""
    from hashlib import blake2b  # noqa: PLC0415 (only for stores without a file)

    place = address.rpartition("@")[2].partition("?")[0]
    return blake2b(place.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
