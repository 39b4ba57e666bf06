"""RequestBody: the body of a request, taken apart where it is bytes and put together again from them.

Only what changes is written anew; every other byte is the client's. A message is known again by its content:
cache marks, which clients move from request to request, and the two ways to write a single text do not count.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.errors import CtxgcError
from ctxgc.session import Format, PlacedMessage

_KEYS: Mapping[Format, str] = {
    "anthropic": "messages", "openai": "messages", "responses": "input",
}  # fmt: skip
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_NO_HALF = rb"\\u0020"
_HEAD = re.compile(rb'\s*,?\s*("(?:[^"\\]|\\.)*")\s*:\s*')
_BETWEEN = re.compile(rb"\s*,?\s*")
RECENT_REQUESTS = 8
_UNMARKED = ("thinking", "redacted_thinking")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


class UnreadableError(CtxgcError):
    """The body is not one that can be taken apart; it is passed on as it is."""

    code = "unreadable"


class RequestBody:
    """The body of a request with a history, its fields and its messages as the bytes that came."""

    def __init__(self, body: bytes, form: Format) -> None:
        self.body = body
        self.form = form
        self.key = _KEYS[form]
        # Half a surrogate pair is no JSON for the decoder; of the same length, a blank is.
        plain = body if b"\\u" not in body else _HALF.sub(_NO_HALF, body)
        self._spans = dict(_spans(plain, _FIELDS, b"{"))
        if self.key not in self._spans:
            raise UnreadableError(f"the request has no {self.key}")
        start, end = self._spans[self.key]
        if plain[start : start + 1] != b"[":
            raise UnreadableError(f"{self.key} is not a list")
        items = _spans(plain[start:end], _ITEMS, b"[")
        self.messages = [body[start + first : start + last] for _, (first, last) in items]

    def raw(self, name: str) -> bytes | None:
        """Return the bytes of a field; None if it is not there."""
        span = self._spans.get(name)
        return None if span is None else self.body[span[0] : span[1]]

    def field(self, name: str) -> Any:
        """Return the value of a field; None if it is not there.

        Raises:
            UnreadableError: it cannot be read.
        """
        raw = self.raw(name)
        return None if raw is None else loads(raw)

    def text(self, name: str) -> str:
        """Return a field that is a text, and an empty text for anything else."""
        value = self.field(name)
        return value if isinstance(value, str) else ""

    def rewritten(self, messages: Sequence[bytes]) -> bytes:
        """Return the body with other messages."""
        return self.with_fields({self.key: b"[" + b",".join(messages) + b"]"})

    def with_tools(self, tools: Sequence[dict[str, Any]]) -> bytes:
        """Return the body with more tools after its own."""
        added = b",".join(json.dumps(tool).encode() for tool in tools)
        own = self.raw("tools") or b"[]"
        if own[:1] != b"[":
            return self.body
        inner = own[1:-1].strip()
        return self.with_fields({"tools": b"[" + (inner + b"," if inner else b"") + added + b"]"})

    def with_fields(self, changes: Mapping[str, bytes]) -> bytes:
        """Return the body with other values for some fields; those that it lacks come last."""
        spans = sorted(
            (self._spans[name], value) for name, value in changes.items() if name in self._spans
        )
        pieces, at = [], 0
        for (start, end), value in spans:
            pieces += [self.body[at:start], value]
            at = end
        rest = self.body[at:]
        new = [name for name in changes if name not in self._spans]
        if new:
            brace = rest.rindex(b"}")
            fields = b"".join(
                b"," + json.dumps(name).encode() + b":" + changes[name] for name in new
            )
            rest = rest[:brace] + fields + rest[brace:]
        return b"".join([*pieces, rest])


def _spans(data: bytes, decoder: Any, opening: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name and the place of each value of an object, or of a list.

    Raises:
        UnreadableError: it is not JSON, or says something twice.
    """
    try:
        found = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise UnreadableError("the request is not JSON that can be read") from error
    named = isinstance(found, dict)
    at = data.index(opening) + 1
    for key, value in found.items() if named else enumerate(found):
        raw = bytes(value)
        start = data.find(raw, at)
        gap = data[at:start]
        match = (_HEAD if named else _BETWEEN).fullmatch(gap) if start >= 0 else None
        if match is None or (named and json.loads(match[1]) != key):
            raise UnreadableError("the request says something twice")
        at = start + len(raw)
        yield str(key), (start, at)


def loads(raw: bytes) -> Any:
    """Return the value of JSON.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("the request is not JSON that can be read") from error


# -- Messages known again


def canonical(raw: bytes) -> bytes:
    """Return a message as it is known again: without cache marks, a single text as a text."""
    data = _unmarked(loads(raw))
    content = data.get("content") if isinstance(data, dict) else None
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        block = content[0]
        if block.keys() == {"type", "text"} and block["type"] == "text" and block["text"]:
            data["content"] = block["text"]
    return json.dumps(data, separators=(",", ":")).encode()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key not in _MARKS}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


class KnownMessages:
    """The messages of the last requests of a conversation, so that only new ones are read."""

    def __init__(self) -> None:
        self._recent: deque[dict[bytes, bytes]] = deque(maxlen=RECENT_REQUESTS)

    def read(self, messages: Sequence[bytes]) -> list[bytes]:
        """Return the messages of a request as they are known again."""
        now: dict[bytes, bytes] = {}
        found = []
        for raw in messages:
            digest = blake2b(raw, digest_size=16).digest()
            known = next((each[digest] for each in self._recent if digest in each), None)
            now[digest] = known if known is not None else canonical(raw)
            found.append(now[digest])
        self._recent.appendleft(now)
        return found


# -- Cache marks


def spliced(originals: Sequence[bytes], view: Sequence[PlacedMessage]) -> list[bytes]:
    """Return the messages of a view as bytes: whole ones as the client sent them, the others as they are.

    A cache mark of a message that was edited, or that left, goes to the nearest message before it.
    """
    pieces = [
        originals[each.number] if each.is_whole and each.number is not None else each.json
        for each in view
    ]
    kept = {each.number for each in view if each.is_whole}
    for number, raw in enumerate(originals):
        if number in kept or b'"cache_control"' not in raw:
            continue
        before = [
            n for n, each in enumerate(view) if each.number is not None and each.number <= number
        ]
        mark = mark_of(loads(raw))
        if mark is not None and before:
            pieces[before[-1]] = _marked(pieces[before[-1]], mark)
    return pieces


def mark_of(message: Any) -> Any:
    """Return the last cache mark in a message; None if it has none."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
    return next((b["cache_control"] for b in reversed(blocks) if b.get("cache_control")), None)


def _marked(raw: bytes, mark: Any) -> bytes:
    """Return a message with a cache mark on its last block that may carry one; as it is if there is none."""
    if b'"cache_control"' in raw:
        return raw
    message = loads(raw)
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        content = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    for block in reversed(blocks):
        if (
            isinstance(block, dict)
            and block.get("type") not in _UNMARKED
            and block.get("text") != ""
        ):
            block["cache_control"] = mark
            return json.dumps({**message, "content": content}, separators=(",", ":")).encode()
    return raw
