"""The last window of a transcript as a history: whole messages, in the order that a provider wants.

Claude Code writes an answer block by block, and each result of parallel calls as it arrives. Here the
blocks of one answer are one message again, followed by all its results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.core import Format
from ctxgc.wire.transcripts.items import (
    Compaction,
    Item,
    Rollback,
    SilentLine,
    TranscriptEntry,
    Usage,
    content_blocks,
)


class RecordedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the window, and the entries that make it up."""

    data: dict[str, Any]
    format: Format
    message_ids: tuple[str, ...]
    lines: tuple[int, ...]
    written_at: datetime | None = None
    model: str | None = None
    is_aside: bool = False
    is_summary: bool = False


class RecordedWindow:
    """Holds the newest context window of a transcript while the file is read.

    Args:
        most: how much it may weigh; above that its oldest items are dropped, and `dropped` counts them.

    `usages` are those reported for this window, without those of turns that were undone; `before` is the
    window that a compaction ended, and `largest` the largest request of all windows.
    """

    def __init__(self, most: int | None = None) -> None:
        self.items: list[TranscriptEntry | SilentLine] = []
        self.usages: list[Usage] = []
        self.number = 1
        self.dropped = 0
        self.before: RecordedWindow | None = None
        self.largest = 0
        self._most = most
        self._weights: list[int] = []
        self._weight = 0
        self._kept: list[TranscriptEntry | SilentLine] = []
        self._held: frozenset[str] = frozenset()

    def take(self, item: Item, weight: int = 0) -> None:
        """Take in the next item of the transcript, with its weight."""
        match item:
            case TranscriptEntry() | SilentLine():
                self._add(item)
                self._weigh(weight)
            case Usage():
                self._report(item)
            case Compaction():
                self._begin(item)
            case Rollback():
                self._roll_back(item.turns)

    def shrink(self, most: int) -> None:
        """Drop the oldest items until the rest weighs no more than this."""
        self._shed(most)

    def entries(self, *, chained: bool) -> list[TranscriptEntry]:
        """Return the messages; with `chained` only those of the branch that the agent is on."""
        items = _live_branch(self.items, self._held) if chained else self.items
        return [item for item in items if isinstance(item, TranscriptEntry)]

    def _report(self, usage: Usage) -> None:
        if not usage.is_side:
            self.usages.append(usage)
            self.largest = max(self.largest, usage.prompt)

    def _add(self, item: TranscriptEntry | SilentLine) -> None:
        if item.is_side:
            return
        self.items.append(item)
        if isinstance(item, TranscriptEntry) and item.is_summary and self._kept:
            self.items.extend(self._kept)
            self._kept = []

    def _weigh(self, weight: int) -> None:
        if self._most is None:
            return
        self._weights += [0] * (len(self.items) - len(self._weights) - 1) + [weight]
        self._weight += weight
        if self._weight > self._most:
            # Well below the limit, so that not every later item moves the list again.
            self._shed(self._most * 3 // 4)

    def _shed(self, most: int) -> None:
        gone = 0
        while self._weight > most and gone < len(self._weights):
            self._weight -= self._weights[gone]
            gone += 1
        self.dropped += gone
        del self.items[:gone], self._weights[:gone]

    def _begin(self, compaction: Compaction) -> None:
        if self.items:
            self.number += 1
            self.before = self._ended()
        self._held = frozenset(compaction.kept)
        self._kept = [item for item in self.items if item.message_id in self._held]
        self.items, self._weights, self._weight, self.dropped = [], [], 0, 0
        self.usages = []

    def _ended(self) -> RecordedWindow:
        ended = RecordedWindow()
        ended.items, ended.usages, ended.number = self.items, self.usages, self.number
        ended._held = self._held
        return ended

    def _roll_back(self, turns: int) -> None:
        begins = [n for n, item in enumerate(self.items) if starts_turn(item)]
        if begins:
            at = begins[-min(turns, len(begins))]
            self.usages = [usage for usage in self.usages if usage.line < self.items[at].line]
            self._weight -= sum(self._weights[at:])
            del self.items[at:], self._weights[at:]


def starts_turn(item: TranscriptEntry | SilentLine) -> bool:
    """Return whether the user says something here."""
    if not isinstance(item, TranscriptEntry) or item.is_aside or item.is_summary or item.is_side:
        return False
    if item.data.get("role") != "user":
        return False
    return not any(block.get("type") == "tool_result" for block in content_blocks(item.data))


def last_window(items: Iterable[Item], *, chained: bool) -> list[RecordedMessage]:
    """Return the messages of the last window."""
    window = RecordedWindow()
    for item in items:
        window.take(item)
    return list(whole_messages(window.entries(chained=chained)))


def whole_messages(entries: Iterable[TranscriptEntry]) -> Iterator[RecordedMessage]:
    """Yield whole messages from entries, each batch of results after its calls."""
    groups: list[_Group] = []
    answers: dict[str, _Group] = {}
    callers: dict[str, _Group] = {}
    for entry in entries:
        group = _home(entry, answers, callers)
        if group is None:
            group = _Group()
            groups.append(group)
        group.entries.append(entry)
        if entry.reply_id is not None and entry.data.get("role") == "assistant":
            answers[entry.reply_id] = group
        callers.update(dict.fromkeys(_ids_of(entry, "tool_use", "id"), group))
    for group in groups:
        yield group.message()
        if group.results is not None:
            yield group.results.message()


class _Group:
    """Entries that are one message, and the message that answers its calls."""

    __slots__ = ("entries", "results")

    def __init__(self) -> None:
        self.entries: list[TranscriptEntry] = []
        self.results: _Group | None = None

    def message(self) -> RecordedMessage:
        first, last = self.entries[0], self.entries[-1]
        return RecordedMessage(
            data=first.data if len(self.entries) == 1 else self._joined(),
            format=first.format,
            message_ids=tuple(entry.message_id for entry in self.entries),
            lines=tuple(entry.line for entry in self.entries),
            written_at=last.written_at,
            model=first.model,
            is_aside=first.is_aside,
            is_summary=first.is_summary,
        )

    def _joined(self) -> dict[str, Any]:
        content = [block for entry in self.entries for block in content_blocks(entry.data)]
        return {**self.entries[0].data, "content": content}


def _home(
    entry: TranscriptEntry, answers: dict[str, _Group], callers: dict[str, _Group]
) -> _Group | None:
    """Return the message that an entry belongs to; None if it starts a new one."""
    if entry.format != "anthropic":
        return None
    if entry.data.get("role") == "assistant":
        return answers.get(entry.reply_id or "")
    caller = next(
        filter(None, map(callers.get, _ids_of(entry, "tool_result", "tool_use_id"))), None
    )
    if caller is None:
        return None
    caller.results = caller.results or _Group()
    return caller.results


# -- The branch that the agent is on


def _live_branch(
    items: Sequence[TranscriptEntry | SilentLine], kept: Collection[str] = ()
) -> list[TranscriptEntry | SilentLine]:
    """Return the newest item and its ancestors, in order: a session file is a tree.

    Blocks of the same answer, and results of its calls, are siblings of the branch and belong to it. If a
    parent was lost with a damaged line, the branch continues with the line before. `kept` are ids that a
    compaction took over from the window before.
    """
    on_branch = _ancestors(items)
    branch = [item for n, item in enumerate(items) if n in on_branch]
    replies = {
        item.reply_id for item in branch if isinstance(item, TranscriptEntry) and item.reply_id
    }
    loose = [
        item for item in items if isinstance(item, TranscriptEntry) and item.reply_id in replies
    ]
    calls = {name for item in (*branch, *loose) for name in _ids_of(item, "tool_use", "id")}
    return [
        item
        for n, item in enumerate(items)
        if n in on_branch or _belongs(item, replies, calls) or item.message_id in kept
    ]


def _ancestors(items: Sequence[TranscriptEntry | SilentLine]) -> set[int]:
    places = {item.message_id: n for n, item in enumerate(items)}
    found: set[int] = set()
    at = len(items) - 1
    while at >= 0 and at not in found:
        found.add(at)
        parent = items[at].parent_id
        if parent is None:
            break
        before = places.get(parent, at - 1)
        at = before if before < at else at - 1
    return found


def _belongs(item: TranscriptEntry | SilentLine, replies: set[str], calls: set[str]) -> bool:
    if not isinstance(item, TranscriptEntry):
        return False
    if item.reply_id is not None and item.reply_id in replies:
        return True
    return any(name in calls for name in _ids_of(item, "tool_result", "tool_use_id"))


def _ids_of(item: TranscriptEntry | SilentLine, kind: str, key: str) -> list[str]:
    if not isinstance(item, TranscriptEntry) or item.format != "anthropic":
        return []
    found = [block.get(key) for block in content_blocks(item.data) if block.get("type") == kind]
    return [name for name in found if isinstance(name, str)]
