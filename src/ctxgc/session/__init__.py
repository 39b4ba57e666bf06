"""Session: append -> watch -> collect -> render. The first page to read is `session.py`.

A session holds one conversation. `Session` delegates to parts: `intake` (messages come in), `view` (what the
model sees), `state` (what is known, stored and counted), `collection` (what leaves, to make room or for the
price), `plugin_check` (what a strategy may do), `apply` (changes of the view), `recall` (what must stay and
what comes back), `delete` and `notices`, `guard` (checkpoints, overflow), `archive` (the store and its
handles), `calls` (one at a time, and the events of each). `setup` puts the parts together; `stored` opens
the sessions of a store to look at them.

Others use `Session`, `collect` and the data they return; `session.inspect()` shows the inside. For the doors
this face also offers what they need of the rooms below: segments, stores, checkpoints, prices.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.collector import stub_at_birth
    from ctxgc.core import (
        ContextSegment, Message, OPENING, RECALL_CALL, SegmentType, is_tombstone, mask_secrets,
        moved_handles, recall_call, recall_template, short_command, utc_now,
    )
    from ctxgc.economics import SHEETS, price_sheet
    from ctxgc.guard import (
        Checkpoint, CheckpointStore, ContextMetrics, Progress, compare_files,
        should_create_checkpoint,
    )
    from ctxgc.session.agreement import shared_with_context, state_from_context
    from ctxgc.session.archive import Hit, Stash, excerpt
    from ctxgc.session.calls import Event
    from ctxgc.session.guard import EMERGENCY, messages_of, why_not_by_itself
    from ctxgc.session.session import Session, collect
    from ctxgc.session.setup import DEFAULT_PRICES, DEFAULT_STORE, SessionParts
    from ctxgc.session.usage import ContextUsage
    from ctxgc.session.stored import copy_in_memory, lost_handles, open_stored
    from ctxgc.stores import (
        DEFAULT_URL, ExportEntry, SCHEMES, SearchFilters, SessionInfo, Store, StoreHit, UNMASKABLE,
        add_to_inbox, chosen_sessions, export_entries, export_json, export_lines, file_of,
        import_entries, inbox_of, migrate_sessions, open_store, read_export, write_export,
    )
    from ctxgc.strategies import load_gc_plugin
    from ctxgc.wire import validate
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ctxgc.collector": "stub_at_birth",
            "ctxgc.core":
                "ContextSegment Message OPENING RECALL_CALL SegmentType is_tombstone "
                "mask_secrets moved_handles recall_call recall_template short_command utc_now",
            "ctxgc.economics": "SHEETS price_sheet",
            "ctxgc.guard":
                "Checkpoint CheckpointStore ContextMetrics Progress compare_files "
                "should_create_checkpoint",
            "agreement": "shared_with_context state_from_context",
            "archive": "Hit Stash excerpt",
            "calls": "Event",
            "guard": "EMERGENCY messages_of why_not_by_itself",
            "session": "Session collect",
            "setup": "DEFAULT_PRICES DEFAULT_STORE SessionParts",
            "usage": "ContextUsage",
            "stored": "copy_in_memory lost_handles open_stored",
            "ctxgc.stores":
                "DEFAULT_URL ExportEntry SCHEMES SearchFilters SessionInfo Store StoreHit "
                "UNMASKABLE add_to_inbox chosen_sessions export_entries export_json "
                "export_lines file_of import_entries inbox_of migrate_sessions open_store "
                "read_export write_export",
            "ctxgc.strategies": "load_gc_plugin",
            "ctxgc.wire": "validate",
        },
    )
