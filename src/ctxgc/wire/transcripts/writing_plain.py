"""Plain transcripts, written again in the shape they had: lines of messages, or one JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ctxgc.core.message import Format
from ctxgc.errors import TranscriptError
from ctxgc.wire.json_text import dump, encode
from ctxgc.wire.transcripts.documents import LISTS
from ctxgc.wire.transcripts.entry import Entry, Usage, moment
from ctxgc.wire.transcripts.facts import Facts
from ctxgc.wire.transcripts.plain import format_of, is_plain
from ctxgc.wire.transcripts.revision import Revision, split_lines

_FIRST_KEY = re.compile(r'"[^"\\]*":( ?)')
_INDENT = re.compile(r"[\[{]\n( +|\t+)\S")


class LinesFile:
    """A file with one message per line."""

    kind = "plain"
    session_id = None
    facts: Final = Facts()
    usages: Final[list[Usage]] = []

    def __init__(self, data: bytes) -> None:
        self._lines = split_lines(data)
        said = [(x.number, x.data) for x in self._lines if x.data is not None and is_plain(x.data)]
        self.format: Format = format_of(message for _, message in said)
        self.entries = [_entry(f"line-{n}", message, self.format) for n, message in said]

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
                hint="only a whole JSON document can be written again; ctxgc doctor shows what is wrong",
            ) from None
        self._under = _list_name(self._value)
        self.facts = Facts()
        if self._under is not None:
            self.facts.note("model", self._value.get("model"))
        messages = [m if isinstance(m, dict) else {} for m in self._messages()]
        self.format: Format = "responses" if self._under == "input" else self._format(messages)
        self.entries = [
            _entry(f"item-{n}", message, self.format)
            for n, message in enumerate(messages, 1)
            if is_plain(message)
        ]

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
        beside = isinstance(self._value, dict) and "system" in self._value
        return "anthropic" if found == "openai" and beside else found

    def _written(self, revision: Revision) -> Iterator[Any]:
        for number, message in enumerate(self._messages(), 1):
            name = f"item-{number}"
            yield from (addition.data for addition in revision.before(name))
            if name not in revision.gone:
                yield revision.edited.get(name, message)
        yield from (addition.data for addition in revision.before(None))


def _entry(message_id: str, message: dict[str, Any], form: Format) -> Entry:
    at = moment(message.get("timestamp"))
    return Entry(message_id=message_id, data=message, format=form, written_at=at)


def _list_name(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return next((name for name in LISTS if isinstance(value.get(name), list)), LISTS[0])


def _layout(text: str) -> dict[str, Any]:
    """How a document is laid out: indented, on one line, or on one line without spaces."""
    found = _INDENT.search(text)
    if found is not None:
        return {"indent": found[1]}
    first = _FIRST_KEY.search(text)
    return {} if first is None or first[1] else {"separators": (",", ":")}
