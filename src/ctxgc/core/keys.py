"""Implicit links through shared keys: same file, tag, topic.

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. A file is cut into cards of lines; two views of a file are linked when they
share a card, and a view without a line range shares all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from ctxgc.core.groups import NOBODY, Group, depart, ids, join
from ctxgc.core.segment import REF_TAG, SECRET_TAG, ContextSegment

KeyKind = Literal["path", "tag", "topic"]
KEY_KINDS: tuple[KeyKind, ...] = ("path", "tag", "topic")
CARD_LINES = 64
MAX_CARDS = 64

WHOLE = -1
WHOLE_FILE = (WHOLE,)

# Two texts that both hold a key are not about the same thing.
_NO_LINKS = (REF_TAG, SECRET_TAG)

Key = tuple[KeyKind, str, int]
"""Kind, value, and for a file view the number of the card (`WHOLE` for the file itself)."""


_NO_CARDS: dict[int, Group] = {}


class Members(NamedTuple):
    """The segments that hold a key, the young apart from the old, each in order of arrival."""

    young: Collection[str]
    old: Collection[str]

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


def cards(line_range: tuple[int, int] | None) -> Sequence[int]:
    """Return the cards that a range of lines covers; a missing or very long range is the whole file."""
    if line_range is None:
        return WHOLE_FILE
    first, last = line_range[0] // CARD_LINES, line_range[1] // CARD_LINES
    return WHOLE_FILE if last - first >= MAX_CARDS else range(first, last + 1)


class Holders:
    """Who holds which key in one generation, in order of arrival; for reading only."""

    __slots__ = ("files", "names")

    def __init__(self) -> None:
        self.files: dict[str, dict[int, Group]] = {}
        """By path, then by card: a path with its cards weighs less than a key for each of them."""
        self.names: dict[KeyKind, dict[str, Group]] = {"tag": {}, "topic": {}}

    def of(self, key: Key) -> Group:
        """Return who holds a key; empty when nobody does."""
        kind, value, card = key
        if kind == "path":
            return self.files.get(value, _NO_CARDS).get(card, NOBODY)
        return self.names[kind].get(value, NOBODY)

    def enter(self, key: Key, segment: ContextSegment) -> None:
        """Enter a segment under a key."""
        kind, value, card = key
        if kind == "path":
            join(self.files.setdefault(value, {}), card, segment)
        else:
            join(self.names[kind], value, segment)

    def leave(self, key: Key, segment: ContextSegment) -> None:
        """Take a segment out from under a key."""
        kind, value, card = key
        if kind != "path":
            depart(self.names[kind], value, segment)
        elif value in self.files:
            depart(self.files[value], card, segment)
            if not self.files[value]:
                del self.files[value]

    def keys(self) -> Iterator[Key]:
        """Yield all keys that somebody holds."""
        for kind, names in self.names.items():
            yield from ((kind, name, WHOLE) for name in names)
        for path, held in self.files.items():
            yield from (("path", path, card) for card in held)


class KeyIndex:
    """Which working segments hold which key, the young apart from the old."""

    __slots__ = ("old", "young")

    def __init__(self) -> None:
        self.young = Holders()
        self.old = Holders()

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment under all its keys."""
        side = self.old if segment.generation == "old" else self.young
        for key in keys_of(segment):
            side.enter(key, segment)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out from under all its keys."""
        for key in keys_of(segment):
            self.young.leave(key, segment)
            self.old.leave(key, segment)

    def promote(self, segment: ContextSegment) -> None:
        """Move a segment from the young to the old side of its keys."""
        for key in keys_of(segment):
            self.young.leave(key, segment)
            self.old.enter(key, segment)

    def members(self, key: Key) -> Members:
        """Return who holds a key; empty when nobody does."""
        return Members(ids(self.young.of(key)), ids(self.old.of(key)))

    def reaches(self, key: Key) -> Iterable[Key]:
        """Return the keys whose members a holder of this key is linked to."""
        kind, value, card = key
        if kind != "path":
            return (key,)
        if card == WHOLE:
            return [("path", value, held) for held in self._cards(value)]
        return (key, ("path", value, WHOLE))

    def holders_of_path(self, path: str) -> Iterator[str]:
        """Yield the segments of a file, those of the whole file and those of any of its cards."""
        seen: set[str] = set()
        for card in self._cards(path):
            for segment_id in self.members(("path", path, card)).all():
                if segment_id not in seen:
                    seen.add(segment_id)
                    yield segment_id

    def keys(self) -> Iterable[Key]:
        """Return all keys that somebody holds."""
        return dict.fromkeys(chain(self.old.keys(), self.young.keys()))

    def _cards(self, path: str) -> dict[int, Group]:
        """Return the cards of a file that somebody holds, those of the old first."""
        return {**self.old.files.get(path, _NO_CARDS), **self.young.files.get(path, _NO_CARDS)}
