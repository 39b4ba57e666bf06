"""A session while its agent works: its file is followed as it grows, and each look shows the window.

Only what is new is read; a file that was replaced is read from its beginning.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ctxgc.core import Message
from ctxgc.errors import TranscriptError
from ctxgc.insight.fill import WindowCount, WindowFill, count_window, fill_of, window_limit
from ctxgc.insight.garbage import Garbage, find_garbage
from ctxgc.insight.local_sessions import session_folders
from ctxgc.tokens import CountingCache, counter_for, part_tokens
from ctxgc.wire.transcripts import (
    HEAD_BYTES,
    Item,
    RecordedWindow,
    TranscriptEntry,
    TranscriptFacts,
    TranscriptKind,
    Usage,
    claude_code,
    codex,
    decode_line,
    plain,
    sniff,
    starts_turn,
    whole_messages,
)

_PIECE = 4 << 20
_LAST_TOOLS = 6
_UUID, _ENOUGH = 36, 8
_LONGEST_TITLE = 200


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
    garbage: Garbage
    seconds_quiet: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["tools"] = [tool._asdict() for tool in self.tools]
        found["samples"] = [sample._asdict() for sample in self.samples]
        return found


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
        messages = [message for e in entries if (message := e.message()) is not None]
        count, fill = self._count(), self.fill()
        whole = list(whole_messages(entries))
        return LiveWindow(
            name=self.path.name,
            path=str(self.path),
            called=_named(self.path),
            kind=self._kind,
            project=self._facts.project or "",
            model=self._facts.model or "",
            messages=len(whole),
            tokens=fill.tokens,
            limit=fill.limit,
            percent=fill.percent,
            zone=fill.zone,
            window=self._window.number,
            samples=[RequestSample(usage.prompt, window) for usage, window in self._requests],
            tools=self._tools(messages, count),
            garbage=find_garbage(whole, count, self._counter, self._facts.tools, self._called),
            seconds_quiet=max(0.0, time.time() - self._changed),
        )

    def fill(self) -> WindowFill:
        """Return how full the window is now."""
        limit = self._limit or window_limit(self._facts, self._window)
        return fill_of(self._count().tokens, limit)

    @property
    def facts(self) -> TranscriptFacts:
        """What the file says about the session."""
        return self._facts

    @property
    def turns(self) -> int:
        """How many requests of the user the session has."""
        return len(self._turns)

    def turns_left(self) -> int | None:
        """Return how many more turns fit if they are like those of this window; None if that is not known."""
        now = self._window.number
        sizes = [usage.prompt for usage, window in self._requests if window == now]
        began = [first for window, first in self._turns if window == now and self._requests[first:]]
        fill = self.fill()
        grown = fill.tokens - sizes[0] if sizes else 0
        if not began or grown <= 0:
            return None
        return int(max(0, fill.limit - fill.tokens) * len(began) / grown)

    def _count(self) -> WindowCount:
        return count_window(self._window, self._kind, self._facts, self._counter)

    def _begin(self) -> None:
        self._place: _Place | None = None
        self._kind: TranscriptKind = "plain"
        self._facts = TranscriptFacts()
        self._window = RecordedWindow()
        self._requests: list[tuple[Usage, int]] = []
        self._turns: list[tuple[int, int]] = []
        self._called: set[str] = set()
        self.first_request = ""
        self.subagents = 0
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
            if isinstance(item, TranscriptEntry):
                self._entry(item)
            if isinstance(item, Usage) and not item.is_side:
                self._request(item)

    def _items(self, line: dict[str, object], raw: bytes, offset: int) -> list[Item]:
        if claude_code.is_claude_code(line):
            return list(claude_code.items(line, self._line, self._facts))
        if codex.is_codex(line):
            return list(codex.items(line, self._line, self._facts))
        if not plain.is_plain(line):
            return []
        entry, usage = (
            plain.entry_of(line, self._format, offset, raw, self._line),
            plain.usage_of(line, self._line),
        )
        return [entry] if usage is None else [entry, usage]

    def _entry(self, entry: TranscriptEntry) -> None:
        self.subagents += entry.is_side and entry.parent_id is None
        if not entry.is_side:
            self._called.update(entry.tools_called())
        if not starts_turn(entry):
            return
        self._turns.append((self._window.number, len(self._requests)))
        if not self.first_request and (message := entry.message()) is not None:
            self.first_request = " ".join(message.text()[: 2 * _LONGEST_TITLE].split())[
                :_LONGEST_TITLE
            ]

    def _request(self, usage: Usage) -> None:
        """Note a request; a later count of the same answer replaces the one before."""
        last = self._requests[-1][0] if self._requests else None
        if last is not None and usage.reply_id is not None and last.reply_id == usage.reply_id:
            self._requests.pop()
        self._requests.append((usage, self._window.number))

    def _tools(self, messages: list[Message], count: WindowCount) -> list[ToolSample]:
        parts = [part for message in messages for part in message.parts]
        results = {p.call_id: p for p in parts if p.kind == "tool_result"}
        calls = [part for part in parts if part.kind == "tool_call"][-_LAST_TOOLS:]
        return [
            ToolSample(
                name=call.name or "tool",
                said=call.text,
                tokens=count.scaled(part_tokens(results[call.call_id], self._counter))
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
