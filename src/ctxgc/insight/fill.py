"""How full the window of a session is: one figure, for whichever door asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from ctxgc.config import GCConfig
from ctxgc.errors import MessageError
from ctxgc.guard import zone_of
from ctxgc.insight.local_sessions import limit_for
from ctxgc.tokens import Reported, TokenCounter, part_tokens, scale_of, tokens_before
from ctxgc.wire import build
from ctxgc.wire.transcripts import (
    RecordedWindow,
    TranscriptEntry,
    TranscriptFacts,
    Usage,
    latest_usages,
)


class WindowFill(NamedTuple):
    """How full the window of a session is."""

    tokens: int
    limit: int
    percent: float
    zone: str


def fill_of(tokens: int, limit: int, config: GCConfig | None = None) -> WindowFill:
    """Return how full a window of this size is with so many tokens."""
    percent = round(100.0 * tokens / limit, 1)
    return WindowFill(tokens, limit, percent, zone_of(percent, config or GCConfig()).value)


def window_limit(facts: TranscriptFacts, window: RecordedWindow) -> int:
    """Return the size of a session's window: no smaller than the largest request that its model took."""
    return limit_for(facts.model, facts.context_limit, window.largest)


def entry_tokens(entry: TranscriptEntry, counter: TokenCounter) -> int:
    """Return the tokens of an entry; 0 if it is not a message of its provider."""
    try:
        message = build(entry.data, entry.format, entry.message_id)
    except MessageError:
        return 0
    return sum(part_tokens(part, counter) for part in message.parts)


class WindowCount:
    """The tokens of a window as its provider counts them.

    That is the newest request with its answer, as reported, and what came since; or, where this window has no
    report yet, all of it by the scale of the window before.

    Args:
        entries: the messages of the window, on the branch that the agent is on.
        usages: what was reported for requests of the window.
        facts: the system prompt and the tools, if the file has them.
        counter: counts what is not reported.
        before: the window before this one.
    """

    def __init__(
        self,
        entries: Sequence[TranscriptEntry],
        usages: Iterable[Usage],
        facts: TranscriptFacts,
        counter: TokenCounter,
        before: WindowCount | None = None,
    ) -> None:
        self._entries = entries
        self._usages = latest_usages(usages)
        self._facts = facts
        self._counter = counter
        self._before = before

    @cached_property
    def tokens(self) -> int:
        """The tokens of the window now."""
        if self.newest is None:
            return self._unreported + self._messages
        since = sum(entry_tokens(entry, self._counter) for entry in self._since(self.newest))
        waiting = self.scaled(since) if since else 0
        return self.newest.prompt + self.newest.output + waiting

    @cached_property
    def newest(self) -> Usage | None:
        """What was reported for the newest request on this branch; None if nothing was."""
        # Codex does not say which answer a count is of; Claude Code does, and keeps those of other branches.
        replies = {entry.reply_id for entry in self._entries} - {None}
        mine = (u for u in reversed(self._usages) if not replies or u.reply_id in replies)
        return next(mine, None)

    @cached_property
    def scale(self) -> float | None:
        """How many of the provider's tokens one of ours is; None if that cannot be known."""
        found = scale_of(self._reports)
        return self._before.scale if found is None and self._before is not None else found

    @cached_property
    def beside(self) -> int:
        """The tokens of a request that are not messages of the file."""
        return self._unreported if self.newest is None else max(0, self.tokens - self._messages)

    def scaled(self, tokens: float) -> int:
        """Return our tokens as the provider counts them."""
        return round(tokens * (self.scale or 1.0))

    @cached_property
    def _messages(self) -> int:
        return self.scaled(sum(size for _, size in self._sizes))

    @cached_property
    def _unreported(self) -> int:
        """What the window before had besides its messages, or what the file shows of it."""
        if self._before is not None:
            return self._before.beside
        return self._counter.count(self._facts.system) + self._counter.count(self._facts.tools)

    @cached_property
    def _sizes(self) -> list[tuple[int, int]]:
        return [(entry.line, entry_tokens(entry, self._counter)) for entry in self._entries]

    @cached_property
    def _reports(self) -> list[Reported]:
        counted = tokens_before(self._sizes, [usage.line for usage in self._usages])
        pairs = zip(counted, self._usages, strict=True)
        return [Reported(tokens, usage.prompt, usage.beside) for tokens, usage in pairs]

    def _since(self, newest: Usage) -> Iterable[TranscriptEntry]:
        """The entries that came after the newest request, and are not its answer."""
        later = (entry for entry in self._entries if entry.line > newest.line)
        return (e for e in later if newest.reply_id is None or e.reply_id != newest.reply_id)


def count_window(
    window: RecordedWindow, kind: str, facts: TranscriptFacts, counter: TokenCounter
) -> WindowCount:
    """Return the count of the window that a transcript ends with."""
    chained = kind == "claude_code"
    before = None
    if window.before is not None:
        old = window.before
        before = WindowCount(old.entries(chained=chained), old.usages, facts, counter)
    return WindowCount(window.entries(chained=chained), window.usages, facts, counter, before)
