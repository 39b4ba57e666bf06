"""Transcripts: the files in which agents keep their conversations, read as a stream or line by line."""

from ctxgc.wire.transcripts.entry import (
    Compaction,
    Damage,
    Entry,
    Item,
    Link,
    Reading,
    Rollback,
    Usage,
)
from ctxgc.wire.transcripts.facts import Facts
from ctxgc.wire.transcripts.reading import read_lines
from ctxgc.wire.transcripts.recorded import Recorded
from ctxgc.wire.transcripts.sniffing import Shape, TranscriptKind
from ctxgc.wire.transcripts.transcript import Transcript, open_transcript

__all__ = [
    "Compaction",
    "Damage",
    "Entry",
    "Facts",
    "Item",
    "Link",
    "Reading",
    "Recorded",
    "Rollback",
    "Shape",
    "Transcript",
    "TranscriptKind",
    "Usage",
    "open_transcript",
    "read_lines",
]
