"""Bonds, and implicit links through shared keys: same file, tag, topic.

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. Views of a file are linked by the cards (runs of lines) that they share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from ctxgc.core.segment import REF_TAG, SECRET_TAG, ContextSegment

# -- Small ordered sets: a tuple of few members, a dict of many


FEW = 24

K = TypeVar("K")
T = TypeVar("T")
Few = tuple[T, ...] | dict[T, None]
Ids = Few[str]


def enter(table: dict[K, Few[T]], key: K, new: T) -> None:
    """Add a member at the end of the set under a key; one that is there keeps its place."""
    members = table.get(key)
    if members is None:
        table[key] = (new,)
    elif isinstance(members, dict):
        members[new] = None
    elif new not in members:
        table[key] = (*members, new) if len(members) < FEW else dict.fromkeys((*members, new))


def leave(table: dict[K, Few[T]], key: K, gone: T) -> None:
    """Take a member out of the set under a key, and the key with the last of them."""
    members = table.get(key)
    if members is None or gone not in members:
        return
    if len(members) == 1:
        del table[key]
    elif isinstance(members, dict):
        del members[gone]
    else:
        table[key] = tuple(other for other in members if other != gone)


# -- Groups of segments: a tuple of few members, a dict of many by their ids


NOBODY: tuple[ContextSegment, ...] = ()

Group = tuple[ContextSegment, ...] | dict[str, ContextSegment]


def members(group: Group) -> Collection[ContextSegment]:
    """Return the segments of a group in order of entry."""
    return group.values() if isinstance(group, dict) else group


def ids(group: Group) -> Collection[str]:
    """Return the ids of a group in order of entry."""
    return group.keys() if isinstance(group, dict) else tuple([s.segment_id for s in group])


def join(table: dict[K, Group], key: K, new: ContextSegment) -> None:
    """Add a segment at the end of the group under a key; one that is there keeps its place."""
    group = table.get(key)
    if group is None:
        table[key] = (new,)
    elif isinstance(group, dict):
        group[new.segment_id] = new
    elif new.segment_id not in [member.segment_id for member in group]:
        whole = (*group, new)
        table[key] = whole if len(whole) <= FEW else {s.segment_id: s for s in whole}


def depart(table: dict[K, Group], key: K, gone: ContextSegment) -> None:
    """Take a segment out of the group under a key, and the key with the last of them."""
    group = table.get(key)
    if isinstance(group, dict):
        group.pop(gone.segment_id, None)
        rest: Group = group
    else:
        rest = tuple([s for s in group or () if s.segment_id != gone.segment_id])
    if rest:
        table[key] = rest
    else:
        table.pop(key, None)


# -- Bonds: segments that live and die together


_NONE: Mapping[str, str] = {}


class Bonds:
    """The bonded groups, and which tool calls still wait for their result."""

    __slots__ = ("_open", "_top", "_unsettled", "groups")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        """The members of each bond by its name, in order of entry; for reading only."""
        self._open: dict[str, dict[str, str]] = {}
        self._top = -1
        self._unsettled: set[str] = set()

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment into its bond."""
        bond = bond_of(segment)
        if bond is None:
            return
        join(self.groups, bond, segment)
        if segment.position < self._top:
            self._unsettled.add(bond)
        else:
            self._top = segment.position
            self._follow(segment, bond)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out of its bond."""
        bond = bond_of(segment)
        if bond is None or bond not in self.groups:
            return
        depart(self.groups, bond, segment)
        if bond in self.groups:
            self._unsettled.add(bond)
        else:
            self._open.pop(bond, None)

    def settle(self) -> None:
        """Find the open calls anew in the bonds that a part left, or came back to out of its turn."""
        for bond in self._unsettled:
            self._open.pop(bond, None)
            parts = members(self.groups.get(bond, ()))
            for segment in sorted(parts, key=attrgetter("position")):
                self._follow(segment, bond)
        self._unsettled.clear()

    def group(self, segment: ContextSegment) -> tuple[str, ...]:
        """Return the ids that move together with a segment, itself included, in order of entry."""
        bond = bond_of(segment)
        group = self.groups.get(bond) if bond is not None else None
        return tuple(ids(group)) if group else (segment.segment_id,)

    def open_calls(self) -> tuple[str, ...]:
        """Return the segments that hold a tool call without a result."""
        return tuple(call for calls in self._open.values() for call in calls.values())

    def is_open(self, segment: ContextSegment) -> bool:
        """Return whether a segment is a tool call without a result."""
        bond, call_id = bond_of(segment), segment.call_id
        if bond is None or call_id is None:
            return False
        return self._open.get(bond, _NONE).get(call_id) == segment.segment_id

    def _follow(self, segment: ContextSegment, bond: str) -> None:
        """Note a call as open, or as answered: the last word on a call id holds."""
        if segment.call_id is None:
            return
        if segment.part == "tool_call":
            self._open.setdefault(bond, {})[segment.call_id] = segment.segment_id
        elif segment.part == "tool_result" and bond in self._open:
            self._open[bond].pop(segment.call_id, None)
            if not self._open[bond]:
                del self._open[bond]


def bond_of(segment: ContextSegment) -> str | None:
    """Return the name of a segment's bond: the given one, else its tool call."""
    return segment.bond_id if segment.bond_id is not None else segment.call_id


# -- File cards: which views of a file show some of the same lines


_CARD_LINES = 64
MAX_CARDS = 64

WHOLE = -1
WHOLE_FILE = (WHOLE,)

Views = tuple[ContextSegment, ...] | dict[int, Group]
"""The views of one file: a tuple while they are few, by card once they are many."""


def cards(line_range: tuple[int, int] | None) -> Sequence[int]:
    """Return the cards that a range of lines covers; a missing or very long range is the whole file."""
    if line_range is None:
        return WHOLE_FILE
    first, last = line_range[0] // _CARD_LINES, line_range[1] // _CARD_LINES
    return WHOLE_FILE if last - first >= MAX_CARDS else range(first, last + 1)


def share_a_card(some: Sequence[int], others: Sequence[int]) -> bool:
    """Return whether two views that cover these cards are linked."""
    if some[0] == WHOLE or others[0] == WHOLE:
        return True
    return some[0] <= others[-1] and others[0] <= some[-1]


def add_view(files: dict[str, Views], path: str, view: ContextSegment) -> None:
    """Add a view of a file; one that is there keeps its place."""
    known = files.get(path, NOBODY)
    if isinstance(known, dict):
        _file(known, view)
    elif view.segment_id not in [other.segment_id for other in known]:
        files[path] = _shaped((*known, view))


def drop_view(files: dict[str, Views], path: str, view: ContextSegment) -> None:
    """Take a view of a file out, and the file with the last of them."""
    rest = files.get(path, NOBODY)
    if isinstance(rest, dict):
        for card in cards(view.line_range):
            depart(rest, card, view)
    else:
        rest = tuple([other for other in rest if other.segment_id != view.segment_id])
    if rest:
        files[path] = rest
    else:
        files.pop(path, None)


def on_card(views: Views, card: int) -> Group:
    """Return the views that hold a card; empty when none does."""
    if isinstance(views, dict):
        return views.get(card, NOBODY)
    return tuple([view for view in views if card in cards(view.line_range)])


def cards_of(views: Views) -> Iterable[int]:
    """Return all cards that these views hold, in order of arrival."""
    if isinstance(views, dict):
        return views
    return dict.fromkeys([card for view in views for card in cards(view.line_range)])


def _shaped(views: tuple[ContextSegment, ...]) -> Views:
    if len(views) <= FEW:
        return views
    filed: dict[int, Group] = {}
    for view in views:
        _file(filed, view)
    return filed


def _file(filed: dict[int, Group], view: ContextSegment) -> None:
    for card in cards(view.line_range):
        join(filed, card, view)


# -- Shared keys


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


class _Holders:
    """The segments that hold each key in one generation, in order of arrival."""

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
        """Return the segments that hold a key; may be empty."""
        kind, value, card = key
        if kind == "path":
            return on_card(self.files.get(value, NOBODY), card)
        return self.names[kind].get(value, NOBODY)

    def keys(self) -> Iterator[Key]:
        """Yield all keys in use."""
        for kind, names in self.names.items():
            yield from ((kind, name, WHOLE) for name in names)
        for path, views in self.files.items():
            yield from (("path", path, card) for card in cards_of(views))


class KeyIndex:
    """Which working segments hold which key, the young apart from the old."""

    __slots__ = ("old", "young")

    def __init__(self) -> None:
        self.young = _Holders()
        self.old = _Holders()

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
        """Return the segments that hold a key; may be empty."""
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
        """Return all keys in use."""
        return dict.fromkeys(chain(self.old.keys(), self.young.keys()))

    def _cards(self, path: str) -> Iterable[int]:
        """Return the cards of a file in use, those of the old first."""
        sides = (side.files.get(path, NOBODY) for side in (self.old, self.young))
        return dict.fromkeys(chain.from_iterable(map(cards_of, sides)))
