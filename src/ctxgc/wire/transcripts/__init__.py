"""Transcripts: the files in which agents keep their conversations.

- `transcript`: `open_transcript` (a stream), `read_lines` (a piece), `open_writable` (to rewrite it).
- `claude_code`, `codex`, `plain`: the formats, read and written; `revision`: what a rewriting changes.
- `items`: what a transcript holds: messages, usage, compactions, and the facts about its session.
- `window`: the newest context window, as whole messages.
- `conversion`: a session of one agent as the other writes it; `harness`: texts that agents put in themselves.
- `lines`, `documents`: bytes into JSON, whatever is damaged.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.wire.transcripts.conversion import (
        AgentKind, ConvertedTranscript, convert_transcript,
    )
    from ctxgc.wire.transcripts.harness import harness_class, reminders_in
    from ctxgc.wire.transcripts.items import (
        Compaction, Damage, Item, Rollback, TranscriptEntry, TranscriptFacts, Usage,
        content_blocks, latest_usages,
    )
    from ctxgc.wire.transcripts.lines import decode_line
    from ctxgc.wire.transcripts.revision import Addition, Revision, Writable
    from ctxgc.wire.transcripts.transcript import (
        HEAD_BYTES, Transcript, TranscriptKind, open_transcript, open_writable, read_lines,
        read_whole, sniff,
        writable,
    )
    from ctxgc.wire.transcripts.window import (
        RecordedMessage, RecordedWindow, last_window, starts_turn, whole_messages,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "conversion": "AgentKind ConvertedTranscript convert_transcript",
            "harness": "harness_class reminders_in",
            "items":
                "Compaction Damage Item Rollback TranscriptEntry TranscriptFacts Usage "
                "content_blocks latest_usages",
            "lines": "decode_line",
            "revision": "Addition Revision Writable",
            "transcript":
                "HEAD_BYTES Transcript TranscriptKind open_transcript open_writable read_lines read_whole "
                "sniff writable",
            "window": "RecordedMessage RecordedWindow last_window starts_turn whole_messages",
        },
    )
