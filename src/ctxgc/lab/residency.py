"""Residency: what of the history is still in the view, from request to request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from ctxgc.lab.needs import Needs, Postings, SentMessage, Width

State = Literal["resident", "named", "recallable", "lost"]


class Residency:
    """The view of the last request, with an index of the messages in it that are not the run's own.

    A view changes little from one request to the next, so only the difference is indexed.
    """

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._own = set(map(id, needs.entries))
        self._shown: list[SentMessage] = []
        self._count: Counter[int] = Counter()
        self._facts: dict[str, dict[int, SentMessage]] = {}
        self._lines: Counter[str] = Counter()
        self._words: Counter[str] = Counter()

    def show(self, view: Sequence[SentMessage]) -> int:
        """Take the next view; return the length of its common prefix with the last one, in messages."""
        same = _common_prefix_length(self._shown, view)
        for entry in self._shown[same:]:
            self._leave(entry)
        for entry in view[same:]:
            self._come(entry)
        self._shown = list(view)
        return same

    def is_whole(self, index: int) -> bool:
        """Return whether a message of the run is in the view, unchanged."""
        return self._count[id(self._needs.entries[index])] > 0

    def holds_fact(self, fact: str, index: int) -> bool:
        """Return whether the view before message `index` names a fact."""
        return fact in self._facts or self._any_whole(self._needs.facts, fact, index)

    def holds_line(self, line: str, index: int) -> bool:
        """Return whether a line is in the view before message `index`."""
        return self._lines[line] > 0 or self._any_whole(self._needs.lines, line, index)

    def holds_word(self, word: str, index: int) -> bool:
        """Return whether a plain word is in the view before message `index`."""
        return self._words[word] > 0 or self._any_whole(self._needs.words, word, index)

    def is_resident(self, fact: str, index: int, width: Width) -> bool:
        """Return whether a fact is in the view with the surroundings that it had in the history."""
        if self._any_whole(self._needs.facts, fact, index):
            return True
        return any(
            self._needs.is_original(fact, window, width, index)
            for entry in self._facts.get(fact, {}).values()
            for window in entry.windows(fact, width)
        )

    def state(self, fact: str, index: int, is_recallable: Callable[[int], bool]) -> State:
        """Return what became of a fact that the answer `index` needs."""
        if self.is_resident(fact, index, "line"):
            return "resident"
        if fact in self._facts:
            return "named"
        sources = self._needs.facts.before(fact, index)
        return "recallable" if any(map(is_recallable, reversed(sources))) else "lost"

    def _any_whole(self, postings: Postings, key: str, index: int) -> bool:
        return any(map(self.is_whole, postings.before(key, index)))

    def _come(self, entry: SentMessage) -> None:
        self._count[id(entry)] += 1
        if self._count[id(entry)] > 1 or id(entry) in self._own:
            return
        for fact in entry.facts:
            self._facts.setdefault(fact, {})[id(entry)] = entry
        self._lines.update(entry.lines)
        self._words.update(entry.words)

    def _leave(self, entry: SentMessage) -> None:
        self._count[id(entry)] -= 1
        if self._count[id(entry)] or id(entry) in self._own:
            return
        for fact in entry.facts:
            held = self._facts[fact]
            del held[id(entry)]
            if not held:
                del self._facts[fact]
        self._lines.subtract(entry.lines)
        self._words.subtract(entry.words)


def _common_prefix_length(before: Sequence[SentMessage], now: Sequence[SentMessage]) -> int:
    """Return how many messages two views have in common at their beginning."""
    pairs = zip(before, now, strict=False)
    return next(
        (n for n, (old, new) in enumerate(pairs) if old is not new), min(len(before), len(now))
    )
