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

__all__ = [
    "COLLECTIONS",
    "Collection",
    "Drop",
    "Put",
    "SearchFilters",
    "SessionInfo",
    "Store",
    "StoreHit",
    "StoreReport",
    "Write",
]
