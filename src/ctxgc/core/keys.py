"""Implicit links through shared keys: same file, tag, topic.

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. A file is cut into cards of lines; two views of a file are linked when they
share a card, and a view without a line range shares all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple

from ctxgc.core.compact import NO_IDS, Few, Ids, enter, leave
from ctxgc.core.segment import REF_TAG, SECRET_TAG, ContextSegment

KeyKind = Literal["path", "tag", "topic"]
KEY_KINDS: tuple[KeyKind, ...] = ("path", "tag", "topic")
CARD_LINES = 64
MAX_CARDS = 64

WHOLE = -1

# Two texts that both hold a key are not about the same thing.
_NO_LINKS = (REF_TAG, SECRET_TAG)

Key = tuple[KeyKind, str, int]
"""Kind, value, and for a file view the number of the card (`WHOLE` for the file itself)."""


class Members(NamedTuple):
    """The segments that hold a key, the young apart from the old, each in order of arrival."""

    young: Ids
    old: Ids

    def all(self) -> Iterator[str]:
        """Return them all, the old first."""
        return chain(self.old, self.young)


def keys_of(segment: ContextSegment) -> list[Key]:
    """Return the keys that a segment holds."""
    keys: list[Key] = []
    if segment.topic_id is not None:
        keys.append(("topic", segment.topic_id, WHOLE))
    if segment.tags:
        keys += [("tag", tag, WHOLE) for tag in segment.tags if not tag.startswith(_NO_LINKS)]
    if (path := segment.file_path) is not None:
        keys += [("path", path, card) for card in cards(segment.line_range)]
    return keys


def cards(line_range: tuple[int, int] | None) -> Iterable[int]:
    """Return the cards that a range of lines covers; a missing or very long range is the whole file."""
    if line_range is None:
        return (WHOLE,)
    first, last = line_range[0] // CARD_LINES, line_range[1] // CARD_LINES
    return (WHOLE,) if last - first >= MAX_CARDS else range(first, last + 1)


class KeyIndex:
    """Which working segments hold which key."""

    __slots__ = ("_cards", "old", "young")

    def __init__(self) -> None:
        self.young: dict[Key, Ids] = {}
        """The young holders of each key, in order of arrival; for reading only, as is `old`."""
        self.old: dict[Key, Ids] = {}
        self._cards: dict[str, Few[Key]] = {}

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment under all its keys."""
        side = self.old if segment.generation == "old" else self.young
        for key in keys_of(segment):
            enter(side, key, segment.segment_id)
            if key[0] == "path":
                enter(self._cards, key[1], key)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out from under all its keys."""
        for key in keys_of(segment):
            leave(self.young, key, segment.segment_id)
            leave(self.old, key, segment.segment_id)
            if key[0] == "path" and key not in self.young and key not in self.old:
                leave(self._cards, key[1], key)

    def promote(self, segment: ContextSegment) -> None:
        """Move a segment from the young to the old side of its keys."""
        for key in keys_of(segment):
            leave(self.young, key, segment.segment_id)
            enter(self.old, key, segment.segment_id)

    def members(self, key: Key) -> Members:
        """Return who holds a key; empty when nobody does."""
        return Members(self.young.get(key, NO_IDS), self.old.get(key, NO_IDS))

    def reaches(self, key: Key) -> Iterable[Key]:
        """Return the keys whose members a holder of this key is linked to."""
        kind, value, card = key
        if kind != "path":
            return (key,)
        if card == WHOLE:
            return self._cards.get(value, ())
        return (key, ("path", value, WHOLE))

    def holders_of_path(self, path: str) -> Iterator[str]:
        """Yield the segments of a file, those of the whole file and those of any of its cards."""
        seen: set[str] = set()
        for key in tuple(self._cards.get(path, ())):
            for segment_id in self.members(key).all():
                if segment_id not in seen:
                    seen.add(segment_id)
                    yield segment_id

    def keys(self) -> Iterable[Key]:
        """Return all keys that somebody holds."""
        return {**self.old, **self.young}.keys()
