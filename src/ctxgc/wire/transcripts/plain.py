"""Plain transcripts: one provider message per line or per element of a list, in any of the formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from ctxgc.core import Format
from ctxgc.errors import MessageError, TranscriptError
from ctxgc.wire import detect_format, dump, encode
from ctxgc.wire.transcripts.documents import LISTS
from ctxgc.wire.transcripts.items import (
    TranscriptEntry,
    TranscriptFacts,
    Usage,
    anthropic_usage,
    parse_time,
    tokens_of,
)
from ctxgc.wire.transcripts.revision import Revision, split_lines
from ctxgc.wire.transcripts.window import RecordedWindow


def is_plain(line: Mapping[str, Any]) -> bool:
    """Return whether a line is a provider message."""
    return isinstance(line.get("role"), str) or isinstance(line.get("type"), str)


def entry_of(
    line: Mapping[str, Any], form: Format, offset: int, raw: bytes, number: int = 0
) -> TranscriptEntry:
    """Return a line as an entry; its offset distinguishes it from another line with the same content."""
    digest = blake2b(raw, digest_size=8).hexdigest()
    return TranscriptEntry(
        message_id=f"line-{offset}-{digest}",
        data=dict(line),
        format=form,
        written_at=parse_time(line.get("timestamp")),
        line=number,
    )


def format_of(messages: Iterable[Mapping[str, Any]]) -> Format:
    """Return the format of the messages; if formats mix, the first that is not `openai`."""
    sample = list(messages)
    try:
        return detect_format(sample)
    except MessageError:
        marks = (detect_format([message]) for message in sample)
        return next((mark for mark in marks if mark != "openai"), "openai")


def usage_of(line: Mapping[str, Any], number: int) -> Usage | None:
    """Return the usage in the line of a message, as the providers spell it; None if there is none."""
    said = line.get("usage")
    if not isinstance(said, Mapping):
        return None
    found = anthropic_usage(said)
    total = found.uncached or tokens_of(said, "prompt_tokens")
    read, write = found.cache_read, found.cache_write
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
    if isinstance(details, Mapping):
        read, write = tokens_of(details, "cached_tokens"), tokens_of(details, "cache_write_tokens")
        # Here the total holds what was cached; with Anthropic it does not.
        total = max(0, total - read - write)
    return msgspec.structs.replace(
        found,
        uncached=total,
        cache_read=read,
        cache_write=write,
        output=found.output or tokens_of(said, "completion_tokens"),
        line=number,
        written_at=parse_time(line.get("timestamp")),
    )


def note_fields(fields: Mapping[str, Any], facts: TranscriptFacts) -> None:
    """Note the other fields of a request: its model, system prompt and tools."""
    facts.note("model", fields.get("model"))
    system = fields.get("system") or fields.get("instructions")
    blocks = system if isinstance(system, list) else [{"text": system}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    facts.system = "\n".join(text for text in texts if isinstance(text, str))
    tools = fields.get("tools")
    facts.tools = dump(tools) if isinstance(tools, list) and tools else ""


# -- Writing


_FIRST_KEY = re.compile(r'"[^"\\]*":( ?)')
_INDENT = re.compile(r"[\[{]\n( +|\t+)\S")


class LinesFile:
    """A file with one message per line."""

    kind = "plain"
    session_id = None
    facts: Final = TranscriptFacts()
    usages: Final[list[Usage]] = []

    def __init__(self, data: bytes) -> None:
        self._lines = split_lines(data)
        said = [(x.number, x.data) for x in self._lines if x.data is not None and is_plain(x.data)]
        self.format: Format = format_of(message for _, message in said)
        self.entries = [_entry(f"line-{n}", message, self.format, n) for n, message in said]
        self.window = _window_of(self.entries)

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:  # noqa: ARG002
        """Return the file with the revision in it; its messages carry no session id."""
        return b"".join(self._written(revision))

    def _written(self, revision: Revision) -> Iterator[bytes]:
        for line in self._lines:
            name = f"line-{line.number}"
            yield from (dump(addition.data).encode() + b"\n" for addition in revision.before(name))
            if name in revision.edited:
                yield line.with_data(revision.edited[name])
            elif name not in revision.gone:
                yield line.raw
        yield from (dump(addition.data).encode() + b"\n" for addition in revision.before(None))


class DocumentFile:
    """One JSON value: a list of messages, or an object that holds the list."""

    kind = "plain"
    session_id = None
    usages: Final[list[Usage]] = []

    def __init__(self, data: bytes) -> None:
        self._text = data.decode("utf-8", "replace")
        try:
            self._value = json.loads(self._text)
        except (ValueError, RecursionError) as error:
            raise TranscriptError(
                f"the document is damaged: {error}",
                hint="only a complete JSON document can be rewritten; ctxgc doctor shows what is wrong",
            ) from None
        self._under = _list_name(self._value)
        self.facts = TranscriptFacts()
        if self._under is not None:
            note_fields(self._value, self.facts)
        messages = [m if isinstance(m, dict) else {} for m in self._messages()]
        self.format: Format = "responses" if self._under == "input" else self._format(messages)
        self.entries = [
            _entry(f"item-{n}", message, self.format, n)
            for n, message in enumerate(messages, 1)
            if is_plain(message)
        ]
        self.window = _window_of(self.entries)

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:  # noqa: ARG002
        """Return the document with the revision in it, laid out as it was."""
        messages = list(self._written(revision))
        value = messages if self._under is None else {**self._value, self._under: messages}
        text = json.dumps(value, ensure_ascii=False, **_layout(self._text))
        return encode(text) + (b"\n" if self._text.endswith("\n") else b"")

    def _messages(self) -> list[Any]:
        found = self._value if self._under is None else self._value.get(self._under)
        return found if isinstance(found, list) else []

    def _format(self, messages: list[dict[str, Any]]) -> Format:
        found = format_of(messages)
        has_system = isinstance(self._value, dict) and "system" in self._value
        return "anthropic" if found == "openai" and has_system else found

    def _written(self, revision: Revision) -> Iterator[Any]:
        for number, message in enumerate(self._messages(), 1):
            name = f"item-{number}"
            yield from (addition.data for addition in revision.before(name))
            if name not in revision.gone:
                yield revision.edited.get(name, message)
        yield from (addition.data for addition in revision.before(None))


def _entry(message_id: str, message: dict[str, Any], form: Format, line: int) -> TranscriptEntry:
    at = parse_time(message.get("timestamp"))
    return TranscriptEntry(
        message_id=message_id, data=message, format=form, written_at=at, line=line
    )


def _window_of(entries: Iterable[TranscriptEntry]) -> RecordedWindow:
    window = RecordedWindow()
    for entry in entries:
        window.take(entry)
        usage = usage_of(entry.data, entry.line)
        if usage is not None:
            window.take(usage)
    return window


def _list_name(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return next((name for name in LISTS if isinstance(value.get(name), list)), LISTS[0])


def _layout(text: str) -> dict[str, Any]:
    """Return the layout of a document for `json.dumps`: indented, on one line, or without spaces."""
    found = _INDENT.search(text)
    if found is not None:
        return {"indent": found[1]}
    first = _FIRST_KEY.search(text)
    return {} if first is None or first[1] else {"separators": (",", ":")}
