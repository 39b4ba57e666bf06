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
        inner = said.get("message" if self._form == "anthropic" else "response")
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
