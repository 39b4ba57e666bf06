"""The census: in how many messages of the view each name, word and line stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ctxgc.core.text import Text


class Holding:
    """What one message holds verbatim, and which names it lists bare."""

    __slots__ = ("keys", "listed", "names", "words")

    def __init__(
        self,
        names: frozenset[str],
        words: frozenset[str],
        keys: frozenset[str],
        listed: frozenset[str] = frozenset(),
    ) -> None:
        self.names = names
        self.words = words
        self.keys = keys
        self.listed = listed


class Census:
    """Counts holders; a message that changes leaves and enters again."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        """How many messages ever held a name or a word, those that left included."""

    def enter(self, holding: Holding, *, new: bool) -> None:
        """Count what a message holds; `new` when it came in from the host."""
        self.names.update(holding.names)
        self.words.update(holding.words)
        self.keys.update(holding.keys)
        self.listed.update(holding.listed)
        if new:
            self.seen.update(holding.names)
            self.seen.update(holding.words)

    def leave(self, holding: Holding) -> None:
        """Count it no longer."""
        _subtract(self.names, holding.names)
        _subtract(self.words, holding.words)
        _subtract(self.keys, holding.keys)
        _subtract(self.listed, holding.listed)


def whole(text: Text) -> Holding:
    """Return what a message holds that shows all of a text."""
    return Holding(text.names, text.words, text.line_keys)


def partly(text: Text, kept: Iterable[int], listed: Iterable[str] = ()) -> Holding:
    """Return what a message holds of which only some lines stay."""
    lines = list(kept)
    keys = {text.keys[line] for line in lines}
    keys.discard("")
    return Holding(
        frozenset[str]().union(*(text.line_names[line] for line in lines)),
        frozenset[str]().union(*(text.line_words[line] for line in lines)),
        frozenset(keys),
        frozenset(listed),
    )


def _subtract(counts: Counter[str], keys: frozenset[str]) -> None:
    for key in keys:
        counts[key] -= 1
        if counts[key] <= 0:
            del counts[key]
