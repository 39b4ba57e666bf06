"""Stores keep sessions and their stash: memory, json, sqlite, postgres, one protocol.

- `base`: the `Store` protocol, checks and JSON text of documents; `open`: a store by its URL.
- `tables`: sessions in memory, and the memory store; `json_store` and `json_file`: one readable file.
- `sqlite_store`, `sqlite_file`, `sqlite_documents`; `postgres_store`, `postgres_documents`.
- `search`: ranked search, the same in every store; `concurrency`: forks, consistent reads.
- `export`: sessions as a file; `transfer`: copies, imports, migrations.
- `inbox`: where a hook puts a segment without paying for a store: names are loaded when first used.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.stores.base import (
        CENSUS, COLLECTIONS, CollectionName, Drop, Put, SearchFilters, SessionInfo, Store, StoreHit,
        StoreReport, Write,
    )
    from ctxgc.stores.concurrency import consistent_read
    from ctxgc.stores.export import (
        ExportEntry, UNMASKABLE, chosen_sessions, export_entries, export_json, export_lines,
        masked_document, read_export, session_digest, write_export,
    )
    from ctxgc.stores.inbox import add_to_inbox, damage_before, drain_inbox, file_of, inbox_of
    from ctxgc.stores.open import DEFAULT_URL, SCHEMES, default_url, open_store
    from ctxgc.stores.search import search_words
    from ctxgc.stores.staged import StagedStore
    from ctxgc.stores.tables import MemoryStore
    from ctxgc.stores.transfer import copy_session, copy_sessions, import_entries, migrate_sessions
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base":
                "CENSUS COLLECTIONS CollectionName Drop Put SearchFilters SessionInfo Store StoreHit "
                "StoreReport Write",
            "concurrency": "consistent_read",
            "export":
                "ExportEntry UNMASKABLE chosen_sessions export_entries export_json "
                "export_lines masked_document read_export session_digest write_export",
            "inbox": "add_to_inbox damage_before drain_inbox file_of inbox_of",
            "open": "DEFAULT_URL SCHEMES default_url open_store",
            "search": "search_words",
            "staged": "StagedStore",
            "tables": "MemoryStore",
            "transfer": "copy_session copy_sessions import_entries migrate_sessions",
        },
    )
