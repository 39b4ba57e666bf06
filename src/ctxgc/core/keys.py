"""Implicit links through shared keys: same file, tag, topic.

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. A file is cut into cards of lines; two views of a file are linked when they
share a card, and a view without a line range shares all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

from ctxgc.core.compact import NO_IDS, Ids, with_id, without_id
from ctxgc.core.segment import REF_TAG, ContextSegment

KeyKind = Literal["path", "tag", "topic"]
KEY_KINDS: tuple[KeyKind, ...] = ("path", "tag", "topic")
CARD_LINES = 64
MAX_CARDS = 64

WHOLE = -1

Key = tuple[KeyKind, str, int]
"""Kind, value, and for a file view the number of the card (`WHOLE` for the file itself)."""


class Members:
    """The segments that hold a key, the young apart from the old, each in order of arrival."""

    __slots__ = ("old", "young")

    def __init__(self) -> None:
        self.young: Ids = NO_IDS
        self.old: Ids = NO_IDS

    def enter(self, segment: ContextSegment) -> None:
        """Enter a segment on the side of its generation, and there only."""
        self.leave(segment)
        if segment.generation == "old":
            self.old = with_id(self.old, segment.segment_id)
        else:
            self.young = with_id(self.young, segment.segment_id)

    def leave(self, segment: ContextSegment) -> None:
        """Take a segment out on either side."""
        self.old = without_id(self.old, segment.segment_id)
        self.young = without_id(self.young, segment.segment_id)

    def __iter__(self) -> Iterator[str]:
        return chain(self.old, self.young)

    def __len__(self) -> int:
        return len(self.old) + len(self.young)


_NOBODY = Members()


def keys_of(segment: ContextSegment) -> list[Key]:
    """Return the keys that a segment holds."""
    keys: list[Key] = []
    if segment.topic_id is not None:
        keys.append(("topic", segment.topic_id, WHOLE))
    if segment.tags:
        keys += [("tag", tag, WHOLE) for tag in segment.tags if not tag.startswith(REF_TAG)]
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

    __slots__ = ("_cards", "_members")

    def __init__(self) -> None:
        self._members: dict[Key, Members] = {}
        self._cards: dict[str, dict[Key, None]] = {}

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment under all its keys."""
        for key in keys_of(segment):
            members = self._members.get(key)
            if members is None:
                members = self._open(key)
            members.enter(segment)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out from under all its keys."""
        for key in keys_of(segment):
            members = self._members.get(key)
            if members is None:
                continue
            members.leave(segment)
            if not members:
                self._close(key)

    def promote(self, segment: ContextSegment) -> None:
        """Move a segment from the young to the old side of its keys."""
        for key in keys_of(segment):
            self._members[key].enter(segment)

    def members(self, key: Key) -> Members:
        """Return who holds a key; empty when nobody does."""
        return self._members.get(key, _NOBODY)

    def reaches(self, key: Key) -> Iterable[Key]:
        """Return the keys whose members a holder of this key is linked to."""
        kind, value, card = key
        if kind != "path":
            return (key,)
        if card == WHOLE:
            return self._cards.get(value, ())
        whole: Key = ("path", value, WHOLE)
        return (key, whole) if whole in self._members else (key,)

    def holders_of_path(self, path: str) -> Iterator[str]:
        """Yield the segments of a file, those of the whole file and those of any of its cards."""
        seen: set[str] = set()
        for key in tuple(self._cards.get(path, ())):
            for segment_id in self._members[key]:
                if segment_id not in seen:
                    seen.add(segment_id)
                    yield segment_id

    def keys(self) -> Iterable[Key]:
        """Return all keys that somebody holds."""
        return self._members.keys()

    def _open(self, key: Key) -> Members:
        members = self._members[key] = Members()
        if key[0] == "path":
            self._cards.setdefault(key[1], {})[key] = None
        return members

    def _close(self, key: Key) -> None:
        del self._members[key]
        if key[0] == "path":
            siblings = self._cards[key[1]]
            del siblings[key]
            if not siblings:
                del self._cards[key[1]]
