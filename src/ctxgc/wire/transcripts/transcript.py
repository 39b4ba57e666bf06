"""Transcript: a file in which a conversation is kept, read as a stream.

transcript = open_transcript("~/.claude/projects/-repo/0f3c.jsonl")
for item in transcript.items():      # messages, usage, compactions, in bounded memory
...
transcript.view()                    # the last window, as a history that a provider takes
transcript.damage                    # what could not be read, with line numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

from ctxgc.core.message import Format
from ctxgc.errors import TranscriptError
from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts import claude_code, codex, plain
from ctxgc.wire.transcripts.decoding import decode
from ctxgc.wire.transcripts.documents import Document, element
from ctxgc.wire.transcripts.entry import Damage, Entry, Item
from ctxgc.wire.transcripts.facts import Facts
from ctxgc.wire.transcripts.lines import numbered, unpacked
from ctxgc.wire.transcripts.recorded import Recorded, recorded
from ctxgc.wire.transcripts.sniffing import HEAD, Shape, Sniffed, TranscriptKind, kind_of, sniff

MOST_DAMAGE = 1_000
_PROBE = 400


class Transcript:
    """A transcript on disk. Each call of `items` reads the file anew, from its beginning.

    `kind` says who wrote it, `format` in which wire format its messages are, `shape` how it holds
    them. `facts`, `fields`, `damage` and `damaged` tell about the last reading: what the file says of
    its session, what stands beside the messages of a document, and what could not be read.
    """

    def __init__(self, path: Path, sniffed: Sniffed) -> None:
        self.path = path
        self.kind: TranscriptKind = sniffed.kind
        self.format: Format = sniffed.format
        self.shape: Shape = "list" if sniffed.is_document else "lines"
        self.facts = Facts()
        self.fields: dict[str, Any] = {}
        self.damage: list[Damage] = []
        self.damaged = 0
        self._is_document = sniffed.is_document

    @property
    def size(self) -> int:
        """The bytes of the file as it lies on disk."""
        return self.path.stat().st_size

    def items(self, tell: Callable[[int], None] | None = None) -> Iterator[Item]:
        """Yield all that the file says, in its order; `tell` hears the bytes read so far."""
        self.facts, self.fields, self.damage, self.damaged = Facts(), {}, [], 0
        with unpacked(self.path, tell) as file:
            yield from self._document(file) if self._is_document else self._lines(file)

    def entries(self) -> Iterator[Entry]:
        """Yield the messages of the main conversation, those of earlier windows included."""
        for item in self.items():
            if isinstance(item, Entry) and not item.is_side:
                yield item

    def view(self) -> list[Recorded]:
        """Return what the agent would send next: the messages of the last window, whole and valid.

        Calls whose result was never written and results of no call are still in it; `repair` and
        `validate` of `ctxgc.wire` see to those.
        """
        return recorded(self.items(), chained=self.kind == "claude_code")

    def _note(self, damage: Damage) -> None:
        self.damaged += damage.is_lost
        if len(self.damage) < MOST_DAMAGE:
            self.damage.append(damage)

    def _lines(self, file: BufferedReader) -> Iterator[Item]:
        for number, offset, raw in numbered(file, self._note):
            line, trouble = decode(raw)
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
            self._note(Damage(line=number, what="no message: it has neither a role nor a type"))
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
            line, trouble = element(raw)
            if trouble:
                self._note(Damage(line=number, what=trouble, is_lost=line is None))
            if line is not None:
                yield from self._plain(line, number, offset, raw)
        note_fields(document.fields, self.facts)


def note_fields(fields: dict[str, Any], facts: Facts) -> None:
    """Note what stands beside the messages of a request: its model, system prompt and tools."""
    facts.note("model", fields.get("model"))
    system = fields.get("system") or fields.get("instructions")
    blocks = system if isinstance(system, list) else [{"text": system}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    facts.system = "\n".join(text for text in texts if isinstance(text, str))
    tools = fields.get("tools")
    facts.tools = dump(tools) if isinstance(tools, list) and tools else ""


def open_transcript(path: str | Path) -> Transcript:
    """Return the transcript in a file, recognised by its content; gzip is unpacked on the way.

    Raises:
        TranscriptError: the file cannot be read, or nothing at its beginning is a message.
    """
    place = Path(path).expanduser()
    with unpacked(place) as file:
        sniffed = sniff(file.read1(HEAD))
    if sniffed is None:
        raise _no_transcript(place)
    found = Transcript(place, sniffed)
    if sniffed.is_document:
        _probe(found)
    return found


def _probe(found: Transcript) -> None:
    """Read the first messages of a document, whose format nothing else shows."""
    entries = list(islice(found.items(), _PROBE))
    messages = [item.data for item in entries if isinstance(item, Entry)]
    if not messages:
        raise _no_transcript(found.path)
    found.format = "responses" if found.shape == "input" else plain.format_of(messages)
    if found.format == "openai" and found.shape == "messages" and "system" in found.fields:
        found.format = "anthropic"


def _no_transcript(path: Path) -> TranscriptError:
    return TranscriptError(
        f"{path} holds no message that can be read",
        hint="give a session of Claude Code or Codex, or messages as JSON or JSON lines",
        path=str(path),
    )
