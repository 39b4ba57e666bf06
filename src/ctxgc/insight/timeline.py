"""The window of a session at each of its requests: what a time machine shows.

`SessionTimeline` is plain data. Segments are spans of requests, never a list for each request, so that a
session of thousands of requests stays small. `recorded_timeline` and `stored_timeline` make it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ctxgc.core import ContextSegment, mask_secrets, short_command

_LONGEST_LABEL = 80

CacheState = Literal["hit", "part", "miss", "cold"]
Mark = Literal["collection", "compaction", "cache_break", "overflow", "recall", "checkpoint", "now"]
SegmentKind = Literal[
    "system", "tools", "message", "result", "call", "thinking", "media", "summary", "reminder"
]
Form = Literal["whole", "stub"]
ChangeKind = Literal["left", "shrunk", "came_back", "compacted"]


class TimelineRequest(msgspec.Struct, kw_only=True):
    """One request: what it sent, what the cache did, what it cost.

    The counts are the provider's, or `estimated` by the session where that did not report them.
    A last one with the mark `now` is not a request: it is the window as it is, with what came since.
    """

    n: int
    tokens: int
    limit: int
    at: datetime | None = None
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: float | None = None
    cache: CacheState | None = None
    cache_cause: str | None = None
    marks: list[Mark] = []
    estimated: bool = False


class SegmentSpan(msgspec.Struct, array_like=True, frozen=True):
    """From one request to another, that one included, a segment was in the window in this form."""

    first: int
    last: int
    tokens: int
    form: Form = "whole"
    status: str = "alive"


class TimelineSegment(msgspec.Struct, kw_only=True):
    """A segment, and when it was in the window."""

    id: str
    label: str
    source: SegmentKind
    policy: str
    role: str
    tokens: int
    tool: str | None = None
    file: str | None = None
    spans: list[SegmentSpan] = []


class TimelineChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a request no longer had, had smaller, or had again, and why."""

    request: int
    segment: str
    kind: ChangeKind
    why: str
    tokens: int
    handle: str | None = None
    collection: int | None = None


class SessionTimeline(msgspec.Struct, kw_only=True):
    """The requests of a session, what they held, and what changed between them."""

    requests: list[TimelineRequest]
    segments: list[TimelineSegment]
    changes: list[TimelineChange]


class SpanBook:
    """Writes the spans of segments: each change of form or status ends one and begins the next."""

    def __init__(self) -> None:
        self._open: dict[str, SegmentSpan] = {}
        self._closed: dict[str, list[SegmentSpan]] = {}

    def show(
        self, name: str, request: int, tokens: int, form: Form = "whole", status: str = "alive"
    ) -> None:
        """From this request on a segment is in the window like this."""
        span = SegmentSpan(request, request, tokens, form, status)
        known = self._open.get(name)
        if known is not None:
            if (known.tokens, known.form, known.status) == (tokens, form, status):
                return
            self.hide(name, request)
        self._open[name] = span

    def restate(self, name: str, request: int, status: str) -> None:
        """From this request on a segment has another status."""
        known = self._open[name]
        if known.status != status:
            self.show(name, request, known.tokens, known.form, status)

    def hide(self, name: str, request: int) -> bool:
        """From this request on a segment is not in the window; return whether a request had it."""
        known = self._open.pop(name, None)
        if known is None or known.first >= request:
            return False
        span = msgspec.structs.replace(known, last=request - 1)
        self._closed.setdefault(name, []).append(span)
        return True

    def shown(self) -> list[str]:
        """Return what is in the window now."""
        return list(self._open)

    def hide_all(self, request: int) -> None:
        """From this request on the window holds none of this."""
        for name in self.shown():
            self.hide(name, request)

    def spans(self, name: str) -> list[SegmentSpan]:
        """Return the spans of a segment that have ended, in order."""
        return self._closed.get(name, [])


_KINDS: dict[str, SegmentKind] = {
    "tool_call": "call",
    "tool_result": "result",
    "thinking": "thinking",
    "media": "media",
}


def segment_kind(segment: ContextSegment) -> SegmentKind:
    """Return what a segment is to a reader."""
    if segment.type == "summary":
        return "summary"
    said: SegmentKind = "system" if segment.role == "system" else "message"
    return _KINDS.get(segment.part or "", said)


def segment_label(segment: ContextSegment) -> str:
    """Return a segment in a few words: its tool and what that was asked, or how its text begins."""
    about = segment.file_path or (short_command(segment.command) if segment.command else "")
    if segment.part in ("tool_call", "tool_result"):
        words = " ".join(filter(None, (segment.name, about))) or segment.part.replace("_", " ")
    else:
        # A key that is cut in two is not known for one any more.
        begins = mask_secrets(segment.text[: 8 * _LONGEST_LABEL])
        words = " ".join(begins.split()) or segment.part or segment.type
    return words[:_LONGEST_LABEL]
