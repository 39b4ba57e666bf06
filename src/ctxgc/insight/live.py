"""A session while its agent works: its file is followed as it grows, and each look shows the window.

Only what is new is read; a file that was replaced is read from its beginning.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.errors import TranscriptError
from ctxgc.guard import zone_of
from ctxgc.insight.garbage import find_garbage
from ctxgc.insight.local_sessions import limit_for, session_folders
from ctxgc.tokens import CountingCache, Reported, counter_for, scale_of, tokens_before
from ctxgc.wire.transcripts import (
    HEAD_BYTES,
    Item,
    RecordedWindow,
    TranscriptFacts,
    TranscriptKind,
    Usage,
    claude_code,
    codex,
    decode_line,
    latest_usages,
    plain,
    sniff,
    whole_messages,
)

_PIECE = 4 << 20
_LAST_TOOLS = 6
_UUID, _ENOUGH = 36, 8


class RequestSample(NamedTuple):
    """The tokens of one request, and the number of its window."""

    tokens: int
    window: int


class ToolSample(NamedTuple):
    """A tool call; `tokens` is the size of its result, None while it runs."""

    name: str
    said: str
    tokens: int | None
    failed: bool


class LiveWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A session at one moment; `called` is the name that commands find it by."""

    name: str
    path: str
    called: str
    kind: str
    project: str
    model: str
    messages: int
    tokens: int
    limit: int
    percent: float
    zone: str
    window: int
    samples: list[RequestSample]
    tools: list[ToolSample]
    garbage: dict[str, int]
    seconds_quiet: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["tools"] = [tool._asdict() for tool in self.tools]
        found["samples"] = [sample._asdict() for sample in self.samples]
        return found


class WindowFill(NamedTuple):
    """How full the window of a session is; the zone is that of the default configuration."""

    tokens: int
    limit: int
    percent: float
    zone: str


class _Place(NamedTuple):
    """Which file was read, its size, and where its last complete line ended."""

    inode: int
    size: int
    offset: int


class SessionFollower:
    """Follows a session as its file grows."""

    def __init__(self, path: Path, context_limit: int | None = None) -> None:
        self.path = path
        self._limit = context_limit
        self._counter = CountingCache(counter_for(None))
        self._begin()

    def look(self) -> bool:
        """Read what is new, and return whether anything was.

        Raises:
            TranscriptError: the file holds no messages, and never did.
        """
        try:
            return self._look()
        except OSError as error:
            if self._place is None:
                raise TranscriptError(
                    f"{self.path} cannot be read: {error.strerror}",
                    hint="ctxgc sessions lists them",
                ) from None
            return False  # moved away for a moment: its agent may be replacing it

    def window(self) -> LiveWindow:
        """Return the session as it is now."""
        entries = self._window.entries(chained=self._kind == "claude_code")
        known = [(e.line, message) for e in entries if (message := e.message()) is not None]
        messages = [message for _, message in known]
        sizes = [(line, self._tokens(message)) for line, message in known]
        scale = self._scale(sizes)
        fill = self._fill(sizes, scale)
        garbage = find_garbage(list(whole_messages(entries)), self._counter)
        dead: dict[str, int] = {}
        for each in garbage.dead:
            dead[each.reason] = dead.get(each.reason, 0) + round(scale * each.tokens)
        return LiveWindow(
            name=self.path.name,
            path=str(self.path),
            called=_named(self.path),
            kind=self._kind,
            project=self._facts.project or "",
            model=self._facts.model or "",
            messages=len(messages),
            tokens=fill.tokens,
            limit=fill.limit,
            percent=fill.percent,
            zone=fill.zone,
            window=self._window.number,
            samples=list(self._samples),
            tools=self._tools(messages, scale),
            garbage=dead,
            seconds_quiet=max(0.0, time.time() - self._changed),
        )

    def fill(self) -> WindowFill:
        """Return how full the window is now, as `window` tells it."""
        entries = self._window.entries(chained=self._kind == "claude_code")
        known = [(e.line, message) for e in entries if (message := e.message()) is not None]
        sizes = [(line, self._tokens(message)) for line, message in known]
        return self._fill(sizes, self._scale(sizes))

    def _fill(self, sizes: list[tuple[int, int]], scale: float) -> WindowFill:
        counted = round(scale * sum(size for _, size in sizes))
        tokens = max(self._reported, counted) if self._reported else counted
        limit = self._limit or limit_for(self._facts.model, self._facts.context_limit, tokens)
        percent = 100.0 * tokens / limit
        return WindowFill(tokens, limit, percent, zone_of(percent, GCConfig()).value)

    def _begin(self) -> None:
        self._place: _Place | None = None
        self._kind: TranscriptKind = "plain"
        self._facts = TranscriptFacts()
        self._window = RecordedWindow()
        self._samples: list[RequestSample] = []
        self._reported = 0
        self._line = 0
        self._changed = 0.0

    def _look(self) -> bool:
        about = self.path.stat()
        if self._place is not None and (
            about.st_ino != self._place.inode or about.st_size < self._place.offset
        ):
            self._begin()
        if self._place is not None and about.st_size == self._place.size:
            return False
        self._read(about.st_ino, 0 if self._place is None else self._place.offset)
        return True

    def _read(self, inode: int, offset: int) -> None:
        with self.path.open("rb") as file:
            if not offset:
                self._sniff(file.read(HEAD_BYTES))
            file.seek(offset)
            left = b""
            while piece := file.read(_PIECE):
                *lines, left = (left + piece).split(b"\n")
                for raw in lines:
                    self._take(raw + b"\n", offset)
                    offset += len(raw) + 1
            # A last line without its newline is still being written.
            self._place = _Place(inode, offset + len(left), offset)
            self._changed = self.path.stat().st_mtime

    def _sniff(self, head: bytes) -> None:
        found = sniff(head)
        if found is None or found.is_document:
            raise TranscriptError(
                f"{self.path.name} is not a session that grows line by line",
                hint="ctxgc analyze reads documents",
                path=str(self.path),
            )
        self._kind, self._format = found.kind, found.format

    def _take(self, raw: bytes, offset: int) -> None:
        self._line += 1
        line, _ = decode_line(raw)
        if line is None:
            return
        for item in self._items(line, raw, offset):
            self._window.take(item)
            if isinstance(item, Usage) and not item.is_side:
                self._sample(item)

    def _items(self, line: dict[str, object], raw: bytes, offset: int) -> list[Item]:
        if claude_code.is_claude_code(line):
            return list(claude_code.items(line, self._line, self._facts))
        if codex.is_codex(line):
            return list(codex.items(line, self._line, self._facts))
        if not plain.is_plain(line):
            return []
        return [plain.entry_of(line, self._format, offset, raw, self._line)]

    def _sample(self, usage: Usage) -> None:
        self._reported = usage.prompt + usage.output
        self._samples.append(RequestSample(self._reported, self._window.number))

    def _scale(self, sizes: list[tuple[int, int]]) -> float:
        """Return how many of the provider's tokens one of ours is, by the reports of this window."""
        usages = latest_usages(self._window.usages)
        counted = tokens_before(sizes, [usage.line for usage in usages])
        reports = [Reported(n, u.prompt, u.beside) for n, u in zip(counted, usages, strict=True)]
        return scale_of(reports) or 1.0

    def _tokens(self, message: Message) -> int:
        return sum(self._counter.count(part.text) + part.media_tokens for part in message.parts)

    def _tools(self, messages: list[Message], scale: float) -> list[ToolSample]:
        parts = [part for message in messages for part in message.parts]
        results = {p.call_id: p for p in parts if p.kind == "tool_result"}
        calls = [part for part in parts if part.kind == "tool_call"][-_LAST_TOOLS:]
        return [
            ToolSample(
                name=call.name or "tool",
                said=call.text,
                tokens=round(scale * self._counter.count(results[call.call_id].text))
                if call.call_id in results
                else None,
                failed=call.call_id in results and results[call.call_id].is_error,
            )
            for call in calls
        ]


def _named(path: Path) -> str:
    """Return a name that commands find the session by: short if the file is where its agent keeps it."""
    kept = any(path.is_relative_to(folder) for folder in session_folders())
    return path.stem[-_UUID:][:_ENOUGH] if kept and len(path.stem) >= _UUID else str(path)
