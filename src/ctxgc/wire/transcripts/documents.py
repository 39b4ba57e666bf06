"""Documents: one JSON value with a list of messages, read message by message.

A list by itself, or an object with the list under `messages` (chat, Anthropic) or `input` (Responses).
It is split into its messages while it is read, so neither its size nor a missing end matters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Any, Literal

import msgspec

from ctxgc.wire.transcripts.items import Damage
from ctxgc.wire.transcripts.lines import BROKEN, decode_line

LISTS: tuple[Literal["messages", "input"], ...] = ("messages", "input")
_CHUNK = 1 << 20
_LONGEST = 64 << 20
_OUTSIDE = re.compile(rb'["{}\[\],:]')
_INSIDE = re.compile(rb'["\\]')

Element = tuple[int, int, bytes]
"""Line on which a message begins, offset of its first byte, and its bytes."""


class Document:
    """Reads one document; `fields` holds its other fields once all messages were yielded."""

    def __init__(self, file: BufferedReader, damage: Callable[[Damage], None]) -> None:
        self.fields: dict[str, Any] = {}
        self.shape: Literal["list", "messages", "input"] | None = None
        self._file = file
        self._damage = damage
        self._data = b""
        self._start = 0
        self._line = 1
        self._at = 0

    def elements(self) -> Iterator[Element]:
        """Yield the messages in order."""
        opening = self._token()
        if opening == b"[":
            self.shape = "list"
            yield from self._list()
        elif opening == b"{":
            yield from self._fields()

    def _fields(self) -> Iterator[Element]:
        while True:
            key = self._key()
            if key is None:
                return
            place = LISTS.index(key) if key in LISTS else None
            if place is not None and self._peek() == b"[":
                self._token()
                self.shape = LISTS[place]
                yield from self._list()
            elif not self._keep_field(key):
                return

    def _key(self) -> str | None:
        """Return the next key of the outer object; None at its end."""
        while (token := self._token()) == b",":
            pass
        if token != b'"':
            return None
        begin = self._at - 1
        if not self._skip_string():
            return None
        key = self._value(begin, self._at)
        return key if self._token() == b":" and isinstance(key, str) else None

    def _keep_field(self, key: str) -> bool:
        begin = self._at
        if not self._skip_value():
            return self._cut(begin)
        found = self._value(begin, self._at)
        if found is not msgspec.UNSET:
            self.fields[key] = found
        self._release()
        return True

    def _list(self) -> Iterator[Element]:
        while (token := self._peek()) not in (b"]", b""):
            if token == b",":
                self._token()
                continue
            begin = self._at + self._blanks()
            line = self._line + self._data.count(b"\n", 0, begin)
            if not self._skip_value():
                self._cut(begin)
                return
            yield line, self._start + begin, self._data[begin : self._at]
            self._release()
        if not self._token():
            self._damage(Damage(line=self._line, what="the list of messages has no end"))

    def _skip_value(self) -> bool:
        """Move past one value; False if the document ends inside it."""
        depth = 0
        while True:
            token = self._token()
            if not token:
                return False
            if depth == 0 and token in b",]}":
                self._at -= 1
                return True
            if token == b'"' and not self._skip_string():
                return False
            depth += (token in b"{[") - (token in b"}]")
            if depth == 0 and token in b'"}]':
                return True

    def _skip_string(self) -> bool:
        while True:
            found = self._search(_INSIDE)
            if found is None:
                return False
            self._at = found + 1
            if self._data[found] == ord('"'):
                return True
            while self._at >= len(self._data):
                if not self._more():
                    return False
            self._at += 1

    def _peek(self) -> bytes:
        found = self._search(_OUTSIDE)
        return b"" if found is None else self._data[found : found + 1]

    def _token(self) -> bytes:
        found = self._search(_OUTSIDE)
        if found is None:
            return b""
        self._at = found + 1
        return self._data[found : found + 1]

    def _search(self, pattern: re.Pattern[bytes]) -> int | None:
        at = self._at
        while True:
            found = pattern.search(self._data, at)
            if found is not None:
                return found.start()
            at = len(self._data)
            if not self._more():
                return None

    def _more(self) -> bool:
        """Read more; False at the end, or if one value has become too long to hold."""
        if len(self._data) - self._at > _LONGEST:
            return False
        try:
            chunk = self._file.read1(_CHUNK)
        except BROKEN as error:
            line = self._line + self._data.count(b"\n")
            self._damage(
                Damage(line=line, what=f"the compressed file ends or breaks here: {error}")
            )
            return False
        self._data += chunk
        return bool(chunk)

    def _blanks(self) -> int:
        rest = self._data[self._at : self._at + 4096]
        return len(rest) - len(rest.lstrip())

    def _release(self) -> None:
        """Free what has been yielded."""
        if self._at > _CHUNK:
            self._line += self._data.count(b"\n", 0, self._at)
            self._start += self._at
            self._data, self._at = self._data[self._at :], 0

    def _cut(self, begin: int) -> bool:
        line = self._line + self._data.count(b"\n", 0, begin)
        self._damage(Damage(line=line, what="cut off: the document ends inside this value"))
        return False

    def _value(self, begin: int, end: int) -> Any:
        try:
            return msgspec.json.decode(self._data[begin:end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.UNSET


def decode_element(raw: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the object of one message and what is wrong with its bytes."""
    return decode_line(raw.strip() + b"\n")
