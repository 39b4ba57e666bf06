"""Transcript files of any agent: recognised by content, read as a stream, read in pieces, or rewritten.

`open_transcript` reads a file of any size in bounded memory; `read_lines` reads a piece of one that grows;
`open_writable` holds one in memory to write it again with changes. The agents' own formats are in
`claude_code`, `codex` and `plain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxgc.core import Format
from ctxgc.errors import TranscriptError
from ctxgc.wire import detect_format
from ctxgc.wire.transcripts import claude_code, codex, plain
from ctxgc.wire.transcripts.claude_code import ClaudeCodeFile
from ctxgc.wire.transcripts.codex import CodexFile
from ctxgc.wire.transcripts.documents import LISTS, Document, decode_element
from ctxgc.wire.transcripts.items import (
    Damage,
    Item,
    TranscriptEntry,
    TranscriptFacts,
    TranscriptPiece,
)
from ctxgc.wire.transcripts.lines import decode_line, json_object, numbered, unpacked
from ctxgc.wire.transcripts.plain import DocumentFile, LinesFile
from ctxgc.wire.transcripts.revision import Writable
from ctxgc.wire.transcripts.window import RecordedMessage, last_window

TranscriptKind = Literal["claude_code", "codex", "plain"]
Shape = Literal["lines", "list", "messages", "input"]

HEAD_BYTES = 256 << 10
_SAMPLE = 200


class Sniffed(msgspec.Struct, frozen=True, kw_only=True):
    """What the start of a file shows. `format` is a guess until a message confirms it."""

    kind: TranscriptKind
    is_document: bool
    format: Format


def sniff(head: bytes) -> Sniffed | None:
    """Return what kind of transcript starts like this; None if it is not one."""
    said = [line for line, _ in map(decode_line, head.split(b"\n")[:_SAMPLE]) if line is not None]
    kind = _kind(said)
    begins = head.lstrip()[:1]
    if kind is not None and begins != b"[" and not _is_document(said):
        return Sniffed(kind=kind, is_document=False, format=_format(kind, said))
    if begins in (b"[", b"{"):
        return Sniffed(kind="plain", is_document=True, format="openai")
    return None


def kind_of(line: Mapping[str, Any]) -> TranscriptKind | None:
    """Return which agent wrote a line; None if it is neither an agent's nor a message."""
    if claude_code.is_claude_code(line):
        return "claude_code"
    if codex.is_codex(line):
        return "codex"
    return "plain" if plain.is_plain(line) else None


def _kind(lines: list[dict[str, Any]]) -> TranscriptKind | None:
    """Return the kind of an agent's line if there is one, else of the first message."""
    kinds = [kind for kind in map(kind_of, lines) if kind is not None]
    return next((kind for kind in kinds if kind != "plain"), kinds[0] if kinds else None)


def _format(kind: TranscriptKind, lines: list[dict[str, Any]]) -> Format:
    if kind == "claude_code":
        return "anthropic"
    if kind == "codex":
        return "responses"
    return plain.format_of(line for line in lines if plain.is_plain(line))


def _is_document(lines: list[dict[str, Any]]) -> bool:
    """Return whether the first line holds a list of messages, and so is the whole document."""
    return bool(lines) and any(isinstance(lines[0].get(name), list) for name in LISTS)


# -- Reading a piece


_PieceLine = tuple[int, bytes, Mapping[str, Any] | None]


def read_lines(data: bytes, *, offset: int = 0, is_end: bool = False) -> TranscriptPiece:
    """Return the messages in the whole lines of a piece of a transcript.

    Args:
        data: the piece, from the start of a line.
        offset: where in the file it starts.
        is_end: whether the file ends with it; only then may a last line without its newline count.

    A line that cannot be read is counted and skipped. A last line without its newline is used only if it
    is complete JSON: its writer may not have finished it.
    """
    lines = list(_lines(data, offset, is_end=is_end))
    said = [line for _, _, line in lines if line is not None]
    form = _plain_format(said)
    entries = [_entry(line, form) for line in lines]
    found = [entry for entry in entries if entry is not None]
    return TranscriptPiece(
        entries=found,
        used=sum(len(raw) for _, raw, _ in lines),
        passed_over=len(said) - len(found),
        broken=sum(line is None and bool(raw.strip()) for _, raw, line in lines),
    )


def _lines(data: bytes, offset: int, *, is_end: bool) -> Iterator[_PieceLine]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1
        raw = data[start : end or len(data)]
        line = json_object(raw)
        if not end and not (is_end and line is not None):
            return
        yield offset + start, raw, line
        start += len(raw)


def _plain_format(lines: list[Mapping[str, Any]]) -> Format:
    return detect_format([line for line in lines if kind_of(line) == "plain"])


def _entry(line: _PieceLine, form: Format) -> TranscriptEntry | None:
    offset, raw, said = line
    if said is None:
        return None
    match kind_of(said):
        case "claude_code":
            return claude_code.entry_of(said)
        case "codex":
            return codex.entry_of(said, offset)
        case "plain":
            return plain.entry_of(said, form, offset, raw)
    return None


# -- Reading as a stream


MOST_DAMAGE = 1_000
_PROBE = 400


class Transcript:
    """A transcript on disk. Each call of `items` reads the file again, from its start.

    `kind` is the agent that wrote it, `format` the wire format of its messages, `shape` how it holds
    them. `facts`, `fields`, `damage` and `damaged` describe the last reading: what the file says about
    its session, the other fields of a document, and what could not be read.
    """

    def __init__(self, path: Path, sniffed: Sniffed) -> None:
        self.path = path
        self.kind: TranscriptKind = sniffed.kind
        self.format: Format = sniffed.format
        self.shape: Shape = "list" if sniffed.is_document else "lines"
        self.facts = TranscriptFacts()
        self.fields: dict[str, Any] = {}
        self.damage: list[Damage] = []
        self.damaged = 0
        self._is_document = sniffed.is_document

    @property
    def size(self) -> int:
        """The size of the file on disk, in bytes."""
        return self.path.stat().st_size

    def items(self, progress: Callable[[int], None] | None = None) -> Iterator[Item]:
        """Yield everything in the file, in order; `progress` is called with the bytes read so far."""
        self.facts, self.fields, self.damage, self.damaged = TranscriptFacts(), {}, [], 0
        with unpacked(self.path, progress) as file:
            yield from self._document(file) if self._is_document else self._lines(file)

    def entries(self) -> Iterator[TranscriptEntry]:
        """Yield the messages of the main conversation, including those of earlier windows."""
        for item in self.items():
            if isinstance(item, TranscriptEntry) and not item.is_side:
                yield item

    def view(self) -> list[RecordedMessage]:
        """Return what the agent would send next: the messages of the last window, whole and valid.

        Calls whose result was never written and results of no call are still in it; see `repair` and
        `validate` of `ctxgc.wire`.
        """
        return last_window(self.items(), chained=self.kind == "claude_code")

    def _note(self, damage: Damage) -> None:
        self.damaged += damage.is_lost
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(damage)

    def _lines(self, file: BufferedReader) -> Iterator[Item]:
        for number, offset, raw in numbered(file, self._note):
            line, trouble = decode_line(raw)
            if trouble:
                self._note(Damage(line=number, what=trouble, is_lost=line is None))
            if line is not None:
                yield from self._said(line, number, offset, raw)

    def _said(self, line: dict[str, Any], number: int, offset: int, raw: bytes) -> Iterator[Item]:
        kind = kind_of(line)
        if kind == "claude_code":
            yield from claude_code.items(line, number, self.facts)
        elif kind == "codex":
            yield from codex.items(line, number, self.facts)
        elif kind == "plain":
            yield from self._plain(line, number, offset, raw)

    def _plain(self, line: dict[str, Any], number: int, offset: int, raw: bytes) -> Iterator[Item]:
        if not plain.is_plain(line):
            self._note(Damage(line=number, what="not a message: it has neither a role nor a type"))
            return
        entry = plain.entry_of(line, self.format, offset, raw, number)
        self.facts.note_time(entry.written_at)
        yield entry
        usage = plain.usage_of(line, number)
        if usage is not None:
            yield usage

    def _document(self, file: BufferedReader) -> Iterator[Item]:
        document = Document(file, self._note)
        self.fields = document.fields
        for number, offset, raw in document.elements():
            self.shape = document.shape or "list"
            line, trouble = decode_element(raw)
            if trouble:
                self._note(Damage(line=number, what=trouble, is_lost=line is None))
            if line is not None:
                yield from self._plain(line, number, offset, raw)
        plain.note_fields(document.fields, self.facts)


def open_transcript(path: str | Path) -> Transcript:
    """Return the transcript in a file, recognised by its content; gzip is decompressed.

    Raises:
        TranscriptError: the file cannot be read, or does not start with a message.
    """
    place = Path(path).expanduser()
    with unpacked(place) as file:
        sniffed = sniff(file.read1(HEAD_BYTES))
    if sniffed is None:
        raise _no_messages(str(place))
    found = Transcript(place, sniffed)
    if sniffed.is_document:
        _probe(found)
    return found


def _probe(found: Transcript) -> None:
    """Read the first messages of a document: only they show its format."""
    entries = list(islice(found.items(), _PROBE))
    messages = [item.data for item in entries if isinstance(item, TranscriptEntry)]
    if not messages:
        raise _no_messages(str(found.path))
    found.format = "responses" if found.shape == "input" else plain.format_of(messages)
    if found.format == "openai" and found.shape == "messages" and "system" in found.fields:
        found.format = "anthropic"


def _no_messages(name: str) -> TranscriptError:
    return TranscriptError(
        f"{name} contains no readable message",
        hint="pass a session of Claude Code or Codex, or messages as JSON or JSON lines",
        path=name,
    )


# -- Writing


def read_whole(path: Path) -> bytes:
    """Return the text of a transcript, unpacked.

    Raises:
        TranscriptError: it cannot be read.
    """
    with unpacked(path) as file:
        return file.read()


def open_writable(path: Path) -> Writable:
    """Return a transcript that can be rewritten, whatever agent wrote it.

    Raises:
        TranscriptError: it cannot be read, or contains no message.
    """
    return writable(read_whole(path), name=str(path))


def writable(data: bytes, *, name: str = "the transcript") -> Writable:
    """Return the transcript in these bytes.

    Raises:
        TranscriptError: they contain no message.
    """
    found = sniff(data[:HEAD_BYTES])
    made = None if found is None else _make(data, found.kind, is_document=found.is_document)
    if made is None or not made.entries:
        raise _no_messages(name)
    return made


def _make(data: bytes, kind: str, *, is_document: bool) -> Writable:
    if kind == "claude_code":
        return ClaudeCodeFile(data)
    if kind == "codex":
        return CodexFile(data)
    return DocumentFile(data) if is_document else LinesFile(data)
