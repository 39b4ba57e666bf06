"""`open_store`: one kind of address for every store, the same at every door."""

from __future__ import annotations

from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError
from ctxgc.stores.base import Store
from ctxgc.stores.inbox import drain_inbox
from ctxgc.stores.json_store import DEFAULT_PATH, JsonStore
from ctxgc.stores.tables import MemoryStore

DEFAULT_URL = f"json:{DEFAULT_PATH}"
SCHEMES = ("memory", "json", "sqlite", "postgresql", "postgres")


def open_store(url: str | Store = DEFAULT_URL) -> Store:
    """Return the store of a URL; an open store is returned as it is.

    `memory:`, `json:PATH`, `sqlite:PATH`, `postgresql://USER@HOST/DATABASE`. Its inbox is drained first.

    Raises:
        ConfigError: the URL is not that of a known kind of store.
        StoreError: the store cannot be opened.
    """
    if not isinstance(url, str):
        return _open_already(url)
    store = _opened(url)
    drain_inbox(store)
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
        return JsonStore(_path(rest) or DEFAULT_PATH)
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
