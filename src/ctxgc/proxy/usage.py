"""Usage: what the provider counted, read from a copy of its answer as it passes by."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.session import Format

MOST_BYTES = 16 << 20
_SIGN = b"usage"
_DIAGNOSTICS = ("diagnostics", "prompt_cache_diagnostics")


class AnswerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider counted for one answer, in its own words.

    `diagnostics` are what it says about its cache, where it was asked to.
    """

    input_tokens: int | None = None
    counts: Mapping[str, Any] = {}
    diagnostics: Mapping[str, Any] = {}

    @property
    def cache_read(self) -> int:
        """The input tokens that came from the provider's cache."""
        details = self.counts.get("prompt_tokens_details") or self.counts.get(
            "input_tokens_details"
        )
        known = details if isinstance(details, dict) else {}
        read = self.counts.get("cache_read_input_tokens") or known.get("cached_tokens")
        return read if isinstance(read, int) else 0


class UsageReader:
    """Reads what was counted out of an answer, streamed or not; what it cannot read it leaves alone."""

    def __init__(self, form: Format, content_type: str, encoding: str) -> None:
        self._form = form
        self._is_stream = "event-stream" in content_type
        self._inflate = zlib.decompressobj(47) if encoding in ("gzip", "deflate") else None
        self._is_readable = encoding in ("", "identity", "gzip", "deflate")
        self._rest = b""
        self._found = AnswerUsage()

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        if not self._is_readable:
            return
        try:
            plain = chunk if self._inflate is None else self._inflate.decompress(chunk)
        except zlib.error:
            self._is_readable = False
            return
        self._rest += plain
        if self._is_stream:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:") and _SIGN in line:
                    self._note(line[5:])
        if len(self._rest) > MOST_BYTES:
            self._is_readable, self._rest = False, b""

    def finish(self) -> AnswerUsage:
        """Return what was counted, once the answer is whole; empty if it does not say."""
        if self._is_readable and not self._is_stream and _SIGN in self._rest:
            self._note(self._rest)
        return self._found

    def _note(self, raw: bytes) -> None:
        try:
            said = json.loads(raw)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict):
            return
        inner = said.get(_INNER[self._form])
        answer = inner if isinstance(inner, dict) else said
        before, usage = self._found, answer.get("usage")
        counts = _later(before.counts, usage) if isinstance(usage, dict) else before.counts
        told = (answer.get(name) for name in _DIAGNOSTICS)
        self._found = AnswerUsage(
            input_tokens=_input_tokens(counts, self._form),
            counts=counts,
            diagnostics=next((each for each in told if isinstance(each, dict)), before.diagnostics),
        )


def _later(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts so far; the end of a stream repeats what the input was, with less in it."""
    known = {name: value for name, value in now.items() if value is not None}
    kept = {
        name: old
        for name, old in before.items()
        if isinstance(old, int) and isinstance(new := known.get(name), int) and new < old
    }
    return {**before, **known, **kept}


def _input_tokens(counts: Mapping[str, Any], form: Format) -> int | None:
    """Return all input tokens of a request, those from the cache included."""
    names = {
        "anthropic": ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        "openai": ("prompt_tokens",),
        "responses": ("input_tokens",),
    }[form]
    known = [count for name in names if isinstance(count := counts.get(name), int)]
    return sum(known) if known else None


# -- The client's gauge


class RaisedUsage:
    """Passes an answer on with the usage that its request would have had with all that had left.

    What left counts as read from the cache, where it would have been.
    """

    def __init__(self, form: Format, content_type: str, left_out: int) -> None:
        self._form = form
        self._left_out = left_out
        self._is_stream = "event-stream" in content_type
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client gets of a piece."""
        self._rest += chunk
        if not self._is_stream:
            return b""
        *lines, self._rest = self._rest.split(b"\n")
        return b"".join(self._line(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return what the client gets last."""
        rest, self._rest = self._rest, b""
        return self._line(rest) if self._is_stream else self._raised(rest)

    def _line(self, line: bytes) -> bytes:
        if not line.startswith(b"data:") or _SIGN not in line:
            return line
        data = line[5:].strip()
        raised = self._raised(data)
        return line if raised is data else b"data: " + raised

    def _raised(self, raw: bytes) -> bytes:
        try:
            said = json.loads(raw)
        except (ValueError, RecursionError):
            return raw
        inner = said.get(_INNER[self._form]) if isinstance(said, dict) else None
        answer = inner if isinstance(inner, dict) else said
        usage = answer.get("usage") if isinstance(answer, dict) else None
        if not self._left_out or not isinstance(usage, dict) or not self._raise(usage):
            return raw
        return json.dumps(said).encode()

    def _raise(self, usage: dict[str, Any]) -> bool:
        """Raise the counts, and return whether there are any of the input."""
        if _input_tokens(usage, self._form) is None:
            return False
        details = usage.get(_DETAILS.get(self._form, ""))
        if isinstance(details, dict):
            self._add(details, "cached_tokens")
        for name in _RAISED[self._form]:
            self._add(usage, name)
        return True

    def _add(self, counts: dict[str, Any], name: str) -> None:
        counts[name] = (counts.get(name) or 0) + self._left_out


_INNER: Mapping[Format, str] = {
    "anthropic": "message", "openai": "response", "responses": "response",
}  # fmt: skip
_DETAILS = {"openai": "prompt_tokens_details", "responses": "input_tokens_details"}
_RAISED: Mapping[Format, tuple[str, ...]] = {
    "anthropic": ("cache_read_input_tokens",),
    "openai": ("prompt_tokens", "total_tokens"),
    "responses": ("input_tokens", "total_tokens"),
}
