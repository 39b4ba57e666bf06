"""The tokens of a transcript by source, tool, file and turn, in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime

import msgspec

from ctxgc.core import Message, Part
from ctxgc.errors import MessageError
from ctxgc.tokens import TokenCounter, part_tokens
from ctxgc.wire import ToolUse, build, understand
from ctxgc.wire.transcripts import TranscriptEntry, starts_turn

_MOST_OPEN = 10_000
_LONGEST_ARGUMENTS = 200_000
_LONGEST_TITLE = 200


class Tally(msgspec.Struct):
    """How often something occurred, and its tokens."""

    tokens: int = 0
    count: int = 0
    failed: int = 0
    largest: int = 0

    def add(self, tokens: int, *, times: int = 1) -> None:
        """Book some tokens."""
        self.tokens += tokens
        self.count += times
        self.largest = max(self.largest, tokens)


class UserTurn(msgspec.Struct):
    """What one request of the user led to."""

    number: int
    line: int
    title: str
    at: datetime | None = None
    tokens: int = 0
    calls: int = 0


class Survey:
    """Counts entries, taken in order; each message once, however often it was sent."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.total = 0
        self.messages = 0
        self.unknown = 0
        self.sources: dict[str, Tally] = {}
        self.tools: dict[str, Tally] = {}
        self.files: dict[str, Tally] = {}
        self.turns: list[UserTurn] = []
        self._open: dict[str, tuple[str, ToolUse]] = {}

    def take(self, entry: TranscriptEntry) -> int:
        """Book a message and return its tokens."""
        try:
            message = build(entry.data, entry.format, entry.message_id)
        except MessageError:
            self.unknown += 1
            return 0
        if entry.is_side:
            return self._side(message)
        if starts_turn(entry):
            self._turn(entry, message)
        self.messages += 1
        tokens = sum(self._part(entry, message, part) for part in message.parts)
        self.total += tokens
        if self.turns:
            self.turns[-1].tokens += tokens
        return tokens

    def _part(self, entry: TranscriptEntry, message: Message, part: Part) -> int:
        tokens = part_tokens(part, self._counter)
        self.sources.setdefault(_source(entry, message, part), Tally()).add(tokens)
        if part.kind == "tool_call":
            self._call(part, tokens)
        elif part.kind == "tool_result":
            self._result(part, tokens)
        return tokens

    def _call(self, part: Part, tokens: int) -> None:
        name = part.name or "unknown tool"
        use = understand(name, part.text if len(part.text) <= _LONGEST_ARGUMENTS else "")
        self.tools.setdefault(name, Tally()).add(tokens)
        if self.turns:
            self.turns[-1].calls += 1
        if use.path is not None:
            self._file(use.path).add(tokens)
        if part.call_id is not None:
            if len(self._open) >= _MOST_OPEN:
                self._open.clear()
            self._open[part.call_id] = (name, use)

    def _result(self, part: Part, tokens: int) -> None:
        name, use = self._open.pop(part.call_id or "", ("unknown tool", ToolUse()))
        tally = self.tools.setdefault(name, Tally())
        tally.add(tokens, times=0)
        tally.failed += part.is_error or use.failed(part.text)
        if use.path is not None:
            self._file(use.path).add(tokens, times=0)

    def _file(self, path: str) -> Tally:
        return self.files.setdefault(os.path.normpath(path), Tally())

    def _side(self, message: Message) -> int:
        tokens = sum(part_tokens(part, self._counter) for part in message.parts)
        self.sources.setdefault("subagents", Tally()).add(tokens)
        return 0

    def _turn(self, entry: TranscriptEntry, message: Message) -> None:
        title = " ".join(message.text()[: _LONGEST_TITLE * 2].split())[:_LONGEST_TITLE]
        number = len(self.turns) + 1
        self.turns.append(
            UserTurn(number=number, line=entry.line, title=title, at=entry.written_at)
        )


_BY_KIND = {"tool_call": "tool calls", "tool_result": "tool results", "thinking": "thinking"}
_BY_ROLE = {"system": "system", "assistant": "assistant"}


def _source(entry: TranscriptEntry, message: Message, part: Part) -> str:
    if entry.is_summary:
        return "summaries"
    said = "reminders" if entry.is_aside else "user"
    return _BY_KIND.get(part.kind) or _BY_ROLE.get(message.role, said)


def largest(tallies: dict[str, Tally], most: int) -> Iterator[tuple[str, Tally]]:
    """Yield the largest tallies first; equal ones by name."""
    ranked = sorted(tallies.items(), key=lambda item: (-item[1].tokens, item[0]))
    return iter(ranked[:most])
