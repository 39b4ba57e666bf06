"""The stash of a session: the handles of its segments, and how to read what they name."""

from __future__ import annotations

import re
import secrets
from base64 import b32encode
from hashlib import blake2b

import msgspec

from ctxgc.core import ContextSegment, Heap
from ctxgc.errors import InputError, UnknownHandleError

SEARCH_HINT = "search(query) finds what was moved out"
_LINES_AROUND = 2


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a search found; `handle` recalls it, also when it never left the view."""

    handle: str
    score: float
    text: str
    segment: ContextSegment


class Stash:
    """Gives every segment its handle: short, stable, and impossible to guess from outside."""

    def __init__(self, heap: Heap, secret: bytes | None = None) -> None:
        self.secret = secret if secret is not None else secrets.token_bytes(16)
        self._heap = heap
        self._by_handle: dict[str, str] = {}
        self._handles: dict[str, str] = {}

    def handle(self, segment_id: str) -> str:
        """Return the handle of a segment, which never changes."""
        known = self._handles.get(segment_id)
        if known is not None:
            return known
        mixed = blake2b(
            segment_id.encode("utf-8", "surrogatepass"), key=self.secret, digest_size=10
        )
        handle = f"h-{b32encode(mixed.digest()).decode().lower()}"
        self._handles[segment_id] = handle
        self._by_handle[handle] = segment_id
        return handle

    def recall_handle(self, segment_id: str) -> str:
        """Return the handle that recalls a segment; a stand-in has the handle of its original."""
        segment = self._heap.peek(segment_id)
        original = segment.derived_from if segment is not None else None
        return self.handle(segment_id if original is None else original)

    def find(self, handle: str, hint: str = SEARCH_HINT) -> ContextSegment:
        """Return the segment with a handle, an id or a name.

        Raises:
            UnknownHandleError: there is none; `hint` says where to find the right one.
        """
        segment = self._heap.peek(self._by_handle.get(handle, handle))
        if segment is None:
            segment = self._by_name(handle)
        if segment is None:
            raise UnknownHandleError(
                f"no segment with the handle '{handle}'", hint=hint, handle=handle
            )
        return segment

    def learn(self, segment_ids: list[str]) -> None:
        """Derive the handles of these segments, after a restart."""
        for segment_id in segment_ids:
            self.handle(segment_id)

    def _by_name(self, handle: str) -> ContextSegment | None:
        if handle.startswith("h-"):
            for segment in self._heap:
                if self.handle(segment.segment_id) == handle:
                    return segment
            return None
        return next((s for s in reversed(list(self._heap)) if s.name == handle), None)


def excerpt(text: str, *, lines: tuple[int, int] | None = None, pattern: str | None = None) -> str:
    """Return a part of a text: a range of its lines (from 1), or those around a literal pattern."""
    rows = text.split("\n")
    if lines is not None:
        first, last = lines
        if first < 1 or last < first:
            raise InputError(
                f"lines cannot be {lines}", hint="(first, last), from 1", field="lines"
            )
        return "\n".join(rows[first - 1 : last])
    if pattern is None:
        return text
    found = [n for n, row in enumerate(rows) if re.search(re.escape(pattern), row, re.IGNORECASE)]
    wanted = {
        near
        for n in found
        for near in range(max(0, n - _LINES_AROUND), min(len(rows), n + _LINES_AROUND + 1))
    }
    return "\n".join(rows[n] for n in sorted(wanted))
