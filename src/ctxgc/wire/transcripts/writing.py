"""Writing transcripts again: the window of a session, changed, in the format of its agent."""

from __future__ import annotations

from pathlib import Path

from ctxgc.errors import TranscriptError
from ctxgc.wire.transcripts.lines import unpacked
from ctxgc.wire.transcripts.revision import Addition, Revision, Writable
from ctxgc.wire.transcripts.sniffing import HEAD, sniff
from ctxgc.wire.transcripts.writing_claude_code import ClaudeCodeFile
from ctxgc.wire.transcripts.writing_codex import CodexFile
from ctxgc.wire.transcripts.writing_plain import DocumentFile, LinesFile

__all__ = ["Addition", "Revision", "Writable", "open_writable", "read_whole", "writable"]


def read_whole(path: Path) -> bytes:
    """Return the text of a transcript, unpacked.

    Raises:
        TranscriptError: it cannot be read.
    """
    with unpacked(path) as file:
        return file.read()


def open_writable(path: Path) -> Writable:
    """Return a transcript that can be written again, whatever agent wrote it.

    Raises:
        TranscriptError: it cannot be read, or holds no message.
    """
    return writable(read_whole(path), name=str(path))


def writable(data: bytes, *, name: str = "the transcript") -> Writable:
    """Return the transcript that these bytes are.

    Raises:
        TranscriptError: they hold no message.
    """
    found = sniff(data[:HEAD])
    made = None if found is None else _make(data, found.kind, is_document=found.is_document)
    if made is None or not made.entries:
        raise TranscriptError(
            f"{name} holds no message that can be read",
            hint="give a session of Claude Code or Codex, or messages as JSON or JSON lines",
            path=name,
        )
    return made


def _make(data: bytes, kind: str, *, is_document: bool) -> Writable:
    if kind == "claude_code":
        return ClaudeCodeFile(data)
    if kind == "codex":
        return CodexFile(data)
    return DocumentFile(data) if is_document else LinesFile(data)
