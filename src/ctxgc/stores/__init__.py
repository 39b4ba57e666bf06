"""Stores keep sessions and their stash: memory, json, sqlite, postgres, one protocol."""

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
