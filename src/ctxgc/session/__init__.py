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
    from ctxgc.budget import GCPolicy
    from ctxgc.collector import Collection, engine_options, stub_at_birth
    from ctxgc.core import (
        Amount, ContextSegment, Format, HANDLE, Message, OPENING, PruningCandidate, PruningPlan,
        RECALL_CALL, SECRET_TAG, SegmentType, Trust, find_secrets, is_tombstone, mask_secrets,
        masked_data, moved_handles, recall_call, recall_template, short_command, short_tombstone,
        utc_now, without_passwords,
    )
    from ctxgc.economics import SHEETS, price_sheet
    from ctxgc.guard import (
        Checkpoint, CheckpointStore, ContextMonitor, Zone, compare_files,
    )
    from ctxgc.session.agreement import LEGACY_KEY, SERVER_KEY, server_doc
    from ctxgc.session.archive import Hit, Stash, excerpt
    from ctxgc.session.async_session import AsyncSession, WorkThread, with_vocabulary
    from ctxgc.session.calls import Event, stop_flushing
    from ctxgc.session.guard import EMERGENCY, messages_of, why_not_by_itself
    from ctxgc.session.journal import Journal, JournalRequest, ViewChange, read_journal
    from ctxgc.session.reader import retold
    from ctxgc.session.recall_tools import RECALL_TOOLS, RecallAnswers, RecallTool
    from ctxgc.session.reminder import is_machine, roots_text, session_roots
    from ctxgc.session.segments import Chosen, PruneStrategy, SegmentWork
    from ctxgc.session.session import Session, collect
    from ctxgc.session.setup import DEFAULT_PRICES, SessionParts
    from ctxgc.session.stored import copy_in_memory, lost_handles, open_stored
    from ctxgc.session.usage import ContextUsage
    from ctxgc.session.view import PlacedMessage
    from ctxgc.stores import (
        ExportEntry, Put, SCHEMES, SearchFilters, SessionInfo, StagedStore, Store, StoreHit,
        UNMASKABLE, add_to_inbox, chosen_sessions, default_url, drain_inbox, export_entries,
        export_json, export_lines, file_of, import_entries, inbox_of, migrate_sessions, open_store,
        read_export, search_words, write_export,
    )
    from ctxgc.strategies import load_gc_plugin
    from ctxgc.summarizers import (
        ExtractiveSummarizer, INSTRUCTIONS, Summarizer, fenced, resolve_summarizer, run_summarizer,
    )
    from ctxgc.tokens import CountingCache, ExactCounter, TokenCounter, counter_for
    from ctxgc.wire import Overflow, detect_format, message_bytes, parse, parse_overflow, validate
    from ctxgc.wire.transcripts import read_lines
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ctxgc.budget": "GCPolicy",
            "ctxgc.collector": "Collection engine_options stub_at_birth",
            "ctxgc.core":
                "Amount ContextSegment Format HANDLE Message OPENING PruningCandidate "
                "PruningPlan RECALL_CALL SECRET_TAG SegmentType Trust find_secrets "
                "is_tombstone mask_secrets masked_data moved_handles recall_call recall_template "
                "short_command short_tombstone utc_now without_passwords",
            "ctxgc.economics": "SHEETS price_sheet",
            "ctxgc.guard":
                "Checkpoint CheckpointStore ContextMonitor Zone compare_files",
            "agreement": "LEGACY_KEY SERVER_KEY server_doc",
            "archive": "Hit Stash excerpt",
            "async_session": "AsyncSession WorkThread with_vocabulary",
            "calls": "Event stop_flushing",
            "guard": "EMERGENCY messages_of why_not_by_itself",
            "journal": "Journal JournalRequest ViewChange read_journal",
            "reader": "retold",
            "recall_tools": "RECALL_TOOLS RecallAnswers RecallTool",
            "reminder": "is_machine roots_text session_roots",
            "segments": "Chosen PruneStrategy SegmentWork",
            "session": "Session collect",
            "setup": "DEFAULT_PRICES SessionParts",
            "stored": "copy_in_memory lost_handles open_stored",
            "usage": "ContextUsage",
            "view": "PlacedMessage",
            "ctxgc.stores":
                "ExportEntry Put SCHEMES SearchFilters SessionInfo StagedStore Store "
                "StoreHit UNMASKABLE add_to_inbox chosen_sessions default_url drain_inbox "
                "export_entries export_json export_lines file_of import_entries inbox_of "
                "migrate_sessions open_store read_export search_words write_export",
            "ctxgc.strategies": "load_gc_plugin",
            "ctxgc.summarizers":
                "ExtractiveSummarizer INSTRUCTIONS Summarizer fenced resolve_summarizer "
                "run_summarizer",
            "ctxgc.tokens": "CountingCache ExactCounter TokenCounter counter_for",
            "ctxgc.wire": "Overflow detect_format message_bytes parse parse_overflow validate",
            "ctxgc.wire.transcripts": "read_lines",
        },
    )
