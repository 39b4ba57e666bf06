"""Transcripts: the files in which coding agents keep their conversations, read line by line."""

from ctxgc.wire.transcripts.entry import Entry, Reading
from ctxgc.wire.transcripts.reading import TranscriptKind, read_lines

__all__ = ["Entry", "Reading", "TranscriptKind", "read_lines"]
