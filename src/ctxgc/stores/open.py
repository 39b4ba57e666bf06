"""`open_store`: one kind of address for every store, the same at every door, and where stores are by default.

Programs that use the library keep their sessions in `.ctxgc/stash.json` of the folder that they run in. The
sessions of coding agents are in one store per user (`ctxgc.places`), because an agent's server, its hooks and
the commands run in many folders and must all open the same handles. Both were in
`artifacts/context_stash.json` before; what is there still opens.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError, InputError, StoreError
from ctxgc.files import append_log
from ctxgc.places import store_in, user_store
from ctxgc.stores.base import Store
from ctxgc.stores.export import export_entries
from ctxgc.stores.inbox import drain_inbox, file_of
from ctxgc.stores.json_store import JsonStore
from ctxgc.stores.tables import MemoryStore
from ctxgc.stores.transfer import import_entries

DEFAULT_URL = "json:.ctxgc/stash.json"
EARLIER_URL = "json:artifacts/context_stash.json"
SCHEMES = ("memory", "json", "sqlite", "postgresql", "postgres")

_LOGGER = logging.getLogger("ctxgc")


def default_url() -> str:
    """Return where a session is kept that names no store: `.ctxgc/stash.json` in this folder.

    A folder that has only the file of earlier versions goes on with that one.
    """
    is_earlier = _exists(EARLIER_URL) and not _exists(DEFAULT_URL)
    return EARLIER_URL if is_earlier else DEFAULT_URL


def open_store(url: str | Store | None = None) -> Store:
    """Return the store of a URL; an open store is returned as it is, None opens the default one.

    `memory:`, `json:PATH`, `sqlite:PATH`, `postgresql://USER@HOST/DATABASE`. Its inbox is drained first; the
    user's store also takes in what earlier versions kept of coding agents in this folder.

    Raises:
        ConfigError: the URL is not that of a known kind of store.
        StoreError: the store cannot be opened.
    """
    if url is not None and not isinstance(url, str):
        return _open_already(url)
    address = default_url() if url is None else url
    if url is None and address == EARLIER_URL:
        _LOGGER.info("the sessions of this folder are still in %s", address)
    store = _opened(address)
    drain_inbox(store)
    if address == user_store():
        _take_in_earlier(store)
    return store


def _opened(url: str) -> Store:
    scheme, colon, rest = url.partition(":")
    if not colon:
        hint = f"did you mean 'json:{url}' or 'sqlite:{url}'?"
        raise ConfigError(f"the store URL {url!r} has no scheme", hint=hint, key="store")
    if scheme not in SCHEMES:
        raise unknown_key(scheme, SCHEMES, "store")
    if scheme == "memory":
        return MemoryStore()
    if scheme == "json":
        return JsonStore(_path(rest) or _path(default_url().partition(":")[2]))
    return _open_database(scheme, url, _path(rest))


def _open_already(store: object) -> Store:
    if not isinstance(store, Store):
        raise ConfigError(
            f"store must be a URL or a Store, got {type(store).__name__}",
            hint="pass a URL such as json:PATH, or an open store",
            key="store",
            field="store",
        )
    return store


def _open_database(scheme: str, url: str, path: str) -> Store:
    if scheme == "sqlite":
        from ctxgc.stores.sqlite_store import SqliteStore  # noqa: PLC0415

        if not path:
            raise ConfigError("the URL 'sqlite:' has no path", hint="sqlite:PATH", key="store")
        return SqliteStore(path)
    from ctxgc.stores.postgres_store import PostgresStore  # noqa: PLC0415

    return PostgresStore(url)


def _path(rest: str) -> str:
    """Return the path of `json:PATH`; `json:///absolute/path` works as well."""
    return rest.removeprefix("//")


def _exists(url: str) -> bool:
    file = file_of(url)
    return file is not None and file.exists()


# -- What earlier versions kept of coding agents, in the folder of each project


_OF_AGENTS = re.compile(r"(?:claude-code|codex|cursor|vscode)[-/].|file-.|mcp(?:/|$)")
"""Names of sessions that `ctxgc prune`, hooks and the MCP server make; others belong to programs."""
_TAKEN_IN = ".taken-in"
_MOST_NOTES = 1 << 20


def _take_in_earlier(store: Store) -> None:
    """Copy the sessions of agents that earlier versions kept in this folder; the sources stay as they are.

    A note next to the store says which file was taken in, so that it is read again only when it changes.
    """
    notes = Path(f"{file_of(store.url)}{_TAKEN_IN}")
    for url in (EARLIER_URL, store_in(str(Path(".ctxgc", "agents")))):
        try:
            note = _note_of(url)
            if not note or (notes.exists() and note in notes.read_bytes()):
                continue
            _copy_of_agents(url, store)
            append_log(notes, note, _MOST_NOTES)
        except (StoreError, OSError) as error:
            _LOGGER.warning("the sessions of agents in %s were not taken in: %s", url, error)


def _note_of(url: str) -> bytes:
    """Return a line that names the file of a store as it is now; nothing unless ctxgc wrote it for this user.

    What comes with a repository that was cloned can be read by others, unlike what ctxgc writes.
    """
    file = file_of(url)
    if file is None or not file.exists():
        return b""
    found = file.stat()
    is_ours = found.st_mode & 0o077 == 0 and (os.name != "posix" or found.st_uid == os.geteuid())
    note = f"{found.st_mtime_ns} {found.st_size} {file.absolute()}\n"
    return note.encode("utf-8", "surrogateescape") if is_ours else b""


def _copy_of_agents(url: str, target: Store) -> None:
    source = _opened(url)
    drain_inbox(source)
    try:
        for info in source.sessions():
            if _OF_AGENTS.match(info.session_id):
                _copy(source, target, info.session_id)
    finally:
        source.close()


def _copy(source: Store, target: Store, session_id: str) -> None:
    try:
        import_entries(target, export_entries(source, [session_id], mask=False))
    except InputError as error:
        _LOGGER.warning("%s of %s was not taken in: %s", session_id, source.url, error)
