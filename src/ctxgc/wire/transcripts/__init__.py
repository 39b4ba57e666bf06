"""Transcripts: the files in which agents keep their conversations, read as a stream or line by line."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.wire.transcripts.entry import (
        Compaction, Damage, Facts, Item, Rollback, SilentLine, TranscriptEntry, TranscriptPiece,
        Usage, newest,
    )
    from ctxgc.wire.transcripts.files import (
        HEAD, Shape, Transcript, TranscriptKind, open_transcript, open_writable, read_lines, sniff,
        writable,
    )
    from ctxgc.wire.transcripts.lines import decode
    from ctxgc.wire.transcripts.revision import Addition, Revision, Writable
    from ctxgc.wire.transcripts.window import Recorded, RecordedWindow, merged, opens_turn, recorded
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "entry":
                "Compaction Damage Facts Item Rollback SilentLine TranscriptEntry "
                "TranscriptPiece Usage newest",
            "files":
                "HEAD Shape Transcript TranscriptKind open_transcript open_writable read_lines "
                "sniff writable",
            "lines": "decode",
            "revision": "Addition Revision Writable",
            "window": "Recorded RecordedWindow merged opens_turn recorded",
        },
    )
