"""Stores keep sessions and their stash: memory, json, sqlite, postgres, one protocol.

Names are loaded when they are first used: a hook that only leaves a segment in the inbox of a store
must not pay for the stores themselves.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.stores.base import (
        COLLECTIONS, Collection, Drop, Put, SearchFilters, SessionInfo, Store, StoreHit,
        StoreReport, Write,
    )
    from ctxgc.stores.concurrency import in_one_moment
    from ctxgc.stores.copy import copy_session, copy_sessions, import_entries, migrate_sessions
    from ctxgc.stores.exchange import (
        ExportEntry, UNMASKABLE, chosen_sessions, entries_of, read_export, session_digest, to_json,
        to_lines, write_export,
    )
    from ctxgc.stores.inbox import SUFFIX, inbox_of, leave, take_in
    from ctxgc.stores.open import DEFAULT_URL, open_store
    from ctxgc.stores.search import words
    from ctxgc.stores.tables import MemoryStore
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base":
                "COLLECTIONS Collection Drop Put SearchFilters SessionInfo Store StoreHit "
                "StoreReport Write",
            "concurrency": "in_one_moment",
            "copy": "copy_session copy_sessions import_entries migrate_sessions",
            "exchange":
                "ExportEntry UNMASKABLE chosen_sessions entries_of read_export session_digest "
                "to_json to_lines write_export",
            "inbox": "SUFFIX inbox_of leave take_in",
            "open": "DEFAULT_URL open_store",
            "search": "words",
            "tables": "MemoryStore",
        },
    )
