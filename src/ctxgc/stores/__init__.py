"""Stores keep sessions and their stash: memory, json, sqlite, postgres, one protocol.

Names are loaded when they are first used: a hook that only leaves a segment in the inbox of a store
must not pay for the stores themselves.
"""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from ctxgc.stores.base import (
        COLLECTIONS,
        Collection,
        Drop,
        Put,
        SearchFilters,
        SessionInfo,
        Store,
        StoreHit,
        StoreReport,
        Write,
    )
    from ctxgc.stores.copy import copy_sessions
    from ctxgc.stores.urls import DEFAULT_URL, open_store

__all__ = [
    "COLLECTIONS",
    "DEFAULT_URL",
    "Collection",
    "Drop",
    "Put",
    "SearchFilters",
    "SessionInfo",
    "Store",
    "StoreHit",
    "StoreReport",
    "Write",
    "copy_sessions",
    "open_store",
]

_HOME_OF = {
    "DEFAULT_URL": "ctxgc.stores.urls",
    "copy_sessions": "ctxgc.stores.copy",
    "open_store": "ctxgc.stores.urls",
}


def __getattr__(name: str) -> typing.Any:
    if name not in __all__:
        raise AttributeError(f"module 'ctxgc.stores' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOME_OF.get(name, "ctxgc.stores.base")), name)
    globals()[name] = value
    return value
