"""Implicit links through shared keys: same file, tag, topic.

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. What sharing a file means stands in `views`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple

from ctxgc.core.groups import NOBODY, Group, depart, ids, join
from ctxgc.core.segment import REF_TAG, SECRET_TAG, ContextSegment
from ctxgc.core.views import WHOLE, Views, add_view, cards, cards_of, drop_view, on_card

KeyKind = Literal["path", "tag", "topic"]
KEY_KINDS: tuple[KeyKind, ...] = ("path", "tag", "topic")

# Two texts that both hold a key are not about the same thing.
_NO_LINKS = (REF_TAG, SECRET_TAG)

Key = tuple[KeyKind, str, int]
"""Kind, value, and for a file view the number of the card (`WHOLE` for the file itself)."""


class Members(NamedTuple):
    """The segments that hold a key, the young apart from the old, each in order of arrival."""

    young: Collection[str]
    old: Collection[str]

    def all(self) -> Iterator[str]:
        """Return them all, the old first."""
        return chain(self.old, self.young)


def keys_of(segment: ContextSegment) -> list[Key]:
    """Return the keys that a segment holds."""
    keys: list[Key] = [(kind, name, WHOLE) for kind, name in _names_of(segment)]
    if (path := segment.file_path) is not None:
        keys += [("path", path, card) for card in cards(segment.line_range)]
    return keys


def _names_of(segment: ContextSegment) -> list[tuple[KeyKind, str]]:
    names: list[tuple[KeyKind, str]] = []
    if segment.topic_id is not None:
        names.append(("topic", segment.topic_id))
    if segment.tags:
        names += [("tag", tag) for tag in segment.tags if not tag.startswith(_NO_LINKS)]
    return names


class Holders:
    """Who holds which key in one generation, in order of arrival."""

    __slots__ = ("files", "names")

    def __init__(self) -> None:
        self.files: dict[str, Views] = {}
        self.names: dict[KeyKind, dict[str, Group]] = {"tag": {}, "topic": {}}
        """Topics and tags; for reading only, as are the files."""

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment under all its keys."""
        for kind, name in _names_of(segment):
            join(self.names[kind], name, segment)
        if segment.file_path is not None:
            add_view(self.files, segment.file_path, segment)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out from under all its keys."""
        for kind, name in _names_of(segment):
            depart(self.names[kind], name, segment)
        if segment.file_path is not None:
            drop_view(self.files, segment.file_path, segment)

    def of(self, key: Key) -> Group:
        """Return who holds a key; empty when nobody does."""
        kind, value, card = key
        if kind == "path":
            return on_card(self.files.get(value, NOBODY), card)
        return self.names[kind].get(value, NOBODY)

    def keys(self) -> Iterator[Key]:
        """Yield all keys that somebody holds."""
        for kind, names in self.names.items():
            yield from ((kind, name, WHOLE) for name in names)
        for path, views in self.files.items():
            yield from (("path", path, card) for card in cards_of(views))


class KeyIndex:
    """Which working segments hold which key, the young apart from the old."""

    __slots__ = ("old", "young")

    def __init__(self) -> None:
        self.young = Holders()
        self.old = Holders()

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment under all its keys."""
        (self.old if segment.generation == "old" else self.young).add(segment)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out from under all its keys."""
        (self.old if segment.generation == "old" else self.young).discard(segment)

    def promote(self, segment: ContextSegment) -> None:
        """Move a segment from the young to the old side of its keys."""
        self.young.discard(segment)
        self.old.add(segment)

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

    def _cards(self, path: str) -> Iterable[int]:
        """Return the cards of a file that somebody holds, those of the old first."""
        sides = (side.files.get(path, NOBODY) for side in (self.old, self.young))
        return dict.fromkeys(chain.from_iterable(map(cards_of, sides)))
