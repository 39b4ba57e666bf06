"""Usage: what the provider counted, read from a copy of its answer as it passes by."""

from __future__ import annotations

import json
import zlib
from typing import Any

from ctxgc.session import Format

MOST_BYTES = 16 << 20
_SIGN = b"usage"


class UsageReader:
    """Reads the input tokens out of an answer, streamed or not; what it cannot read it leaves alone."""

    def __init__(self, form: Format, content_type: str, encoding: str) -> None:
        self._form = form
        self._is_stream = "event-stream" in content_type
        self._inflate = zlib.decompressobj(47) if encoding in ("gzip", "deflate") else None
        self._is_readable = encoding in ("", "identity", "gzip", "deflate")
        self._rest = b""
        self.input_tokens: int | None = None

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

    def finish(self) -> int | None:
        """Return the input tokens once the answer is whole; None if it does not say."""
        if self._is_readable and not self._is_stream and _SIGN in self._rest:
            self._note(self._rest)
        return self.input_tokens

    def _note(self, raw: bytes) -> None:
        try:
            said = json.loads(raw)
        except (ValueError, RecursionError):
            return
        counted = input_tokens(said, self._form)
        # The end of a stream repeats what the input was, with less in it.
        if counted is not None and counted > (self.input_tokens or 0):
            self.input_tokens = counted


def input_tokens(said: Any, form: Format) -> int | None:
    """Return the input tokens that an answer, or an event of one, reports."""
    if not isinstance(said, dict):
        return None
    inner = said.get("message") if form == "anthropic" else said.get("response")
    usage = (inner if isinstance(inner, dict) else said).get("usage")
    if not isinstance(usage, dict):
        return None
    names = {
        "anthropic": ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        "openai": ("prompt_tokens",),
        "responses": ("input_tokens",),
    }[form]
    counts = [usage.get(name) for name in names]
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known else None
