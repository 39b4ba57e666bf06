"""Implicit links: rare identifiers, supersession, bonds, and shared keys (file, tag, topic).

Segments that share a key are linked through the key, never pair by pair: a topic of 100,000 segments
costs 100,000 memberships. Views of a file are linked by the cards (runs of lines) that they share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from math import lcm
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from ctxgc.core.segment import REF_TAG, SECRET_TAG, Access, ContextSegment, Superseding
from ctxgc.core.text import identifiers

# -- Mentions: which segments hold which rare identifier; the soft links and the write barrier


RARE = 8
MAX_TOUCHED = 64

# A shorter text is read again in less time than its names are worth in memory.
_LONG = 256

# So much text is read in the time that it takes to look at the holders of one name.
_CHARS_PER_NAME = 8

_COMMON: tuple[str, ...] = ()
# Divisible by every number of holders up to RARE: whole numbers add up the same in any order.
_WHOLE = lcm(*range(1, RARE + 1))


class Mentions:
    """An index from rare identifiers to the working segments that hold them, oldest first.

    Those that leave are taken out before the next question, all at once: many leave together.
    """

    __slots__ = ("_common", "_holders", "_leaving", "_names")

    def __init__(self) -> None:
        self._holders: dict[str, tuple[str, ...]] = {}
        self._common: dict[str, None] = {}
        self._leaving: dict[str, str] = {}
        self._names: dict[str, Sequence[str]] = {}
        """The identifiers of the long texts, so that these are read once; of those that left, too."""

    def add(self, segment_id: str, text: str, names: Sequence[str] | None = None) -> list[str]:
        """Add a text and return the segments it mentions: at most `MAX_TOUCHED` holders of its rare names.

        `names` are the identifiers of the text, if it was read before.
        """
        self._settle()
        holders, own = self._holders, (segment_id,)
        mentioned: dict[str, None] = {}
        for identifier in self._read(segment_id, text) if names is None else names:
            known = holders.get(identifier)
            if known is None:
                holders[identifier] = own
            elif known:
                mentioned.update(dict.fromkeys(known))
                if len(known) < RARE:
                    holders[identifier] = (*known, segment_id)
                else:
                    self.restate_common((identifier,))
        mentioned.pop(segment_id, None)
        return list(mentioned)[-MAX_TOUCHED:]

    def discard(self, segment_id: str, text: str) -> None:
        """Take a segment out from under the identifiers of its text."""
        self._leaving[segment_id] = text

    def forget(self, segment_id: str) -> None:
        """Keep nothing of a segment that is deleted for good."""
        self._names.pop(segment_id, None)

    def names_of(self, segment_id: str, text: str) -> Sequence[str]:
        """Return the identifiers of a text; one that came in before is not read again."""
        known = self._names.get(segment_id)
        return identifiers(text) if known is None else known

    def holders(self, identifier: str) -> tuple[str, ...]:
        """Return the segments that hold an identifier; empty if it is common or unknown."""
        if self._leaving:
            self._settle()
        return self._holders.get(identifier, _COMMON)

    def going(self, segment_id: str, text: str, leaving: set[str]) -> list[str]:
        """Return the rare identifiers that only this segment and those leaving hold."""
        self._settle()
        holders, own = self._holders, (segment_id,)
        return [
            name
            for name in self.names_of(segment_id, text)
            if (held := holders.get(name))
            and (held == own or leaving.issuperset([h for h in held if h != segment_id]))
        ]

    def is_common(self, identifier: str) -> bool:
        """Return whether an identifier is too common to link segments."""
        self._settle()
        return self._holders.get(identifier) == _COMMON

    def common(self) -> list[str]:
        """Return the identifiers that are common, in the order in which they became so."""
        return list(self._common)

    def restate_common(self, names: Iterable[str]) -> None:
        """Take these for common, and forget their holders."""
        self._settle()
        common = dict.fromkeys(names)
        self._common.update(common)
        self._holders.update(dict.fromkeys(common, _COMMON))

    def soft_weights(self, held: Mapping[str, str]) -> dict[str, float]:
        """Return for each segment how strongly rare identifiers tie it to the given ones.

        An identifier with n holders ties each of them by 1/n. The weights are at most 1.

        Args:
            held: the texts of those that are held, by their ids.
        """
        self._settle()
        shares: dict[str, int] = {}
        for holders in self._held_by(held):
            if len(holders) < 2 or held.keys().isdisjoint(holders):
                continue
            share = _WHOLE // len(holders)
            for holder in holders:
                shares[holder] = shares.get(holder, 0) + share
        return {holder: min(share / _WHOLE, 1.0) for holder, share in shares.items()}

    def _held_by(self, held: Mapping[str, str]) -> Iterable[tuple[str, ...]]:
        """Return the holders of every name in these texts, or of all names when that is less to do."""
        if sum(map(len, held.values())) > _CHARS_PER_NAME * len(self._holders):
            return self._holders.values()
        names = dict.fromkeys([name for i in held for name in self.names_of(i, held[i])])
        return [self._holders.get(name, _COMMON) for name in names]

    def _read(self, segment_id: str, text: str) -> Sequence[str]:
        names = self.names_of(segment_id, text)
        if len(text) >= _LONG:
            self._names[segment_id] = names
        return names

    def _settle(self) -> None:
        """Take those out that left, by their texts or, when that is less to read, by all names."""
        if not self._leaving:
            return
        leaving, self._leaving = self._leaving, {}
        gone, holders = frozenset(leaving), self._holders
        if sum(map(len, leaving.values())) < _CHARS_PER_NAME * len(holders):
            names = [name for i, text in leaving.items() for name in self.names_of(i, text)]
            touched = [(name, holders.get(name, _COMMON)) for name in dict.fromkeys(names)]
        else:
            touched = [(n, held) for n, held in holders.items() if not gone.isdisjoint(held)]
        self._release(touched, gone)

    def _release(
        self, touched: Iterable[tuple[str, tuple[str, ...]]], gone: frozenset[str]
    ) -> None:
        holders = self._holders
        for name, held in touched:
            if gone.isdisjoint(held):
                continue
            if len(held) > 1 and (rest := tuple([holder for holder in held if holder not in gone])):
                holders[name] = rest
            else:
                del holders[name]


# -- Supersession: what an arriving segment makes stale


VIEWS_PER_FILE = 32
_IDENTICAL_MIN_CHARS = 40


class Supersession:
    """The live views of each file, the last output of each command, and the last copy of each text."""

    __slots__ = ("_digests", "_outputs", "_texts", "_views")

    def __init__(self) -> None:
        self._views: dict[str, tuple[ContextSegment, ...]] = {}
        self._outputs: dict[str, str] = {}
        self._texts: dict[bytes, str] = {}
        self._digests: dict[str, bytes] = {}
        """By digests, so that a text that left memory is not read again only to be forgotten."""

    def arrive(self, segment: ContextSegment) -> dict[str, Superseding]:
        """Return the older segments that this one supersedes, and how. Remembers the new one."""
        stale: dict[str, Superseding] = {}
        # A call says what is wanted; only its result says what is so.
        if segment.part == "tool_call":
            return stale
        if segment.file_path is not None and _file_access(segment) is not None:
            stale.update(self._file(segment, segment.file_path))
        if segment.command is not None:
            stale.update(self._command(segment, segment.command))
        if _repeatable(segment):
            for older in self._identical(segment):
                stale.setdefault(older, "identical")
        stale.pop(segment.segment_id, None)
        return stale

    def forget(self, segment: ContextSegment) -> None:
        """Drop a segment that is gone or stale, so that no later arrival finds it."""
        self._forget_view(segment)
        if segment.command is not None and self._outputs.get(segment.command) == segment.segment_id:
            del self._outputs[segment.command]
        self._forget_text(segment)

    def retype(self, before: ContextSegment, now: ContextSegment) -> None:
        """Follow a change of type: what is no longer code or output has no later version."""
        self._forget_text(before)
        if _file_access(now) is None:
            self._forget_view(before)

    def _forget_view(self, segment: ContextSegment) -> None:
        if (path := segment.file_path) in self._views:
            others = (v for v in self._views[path] if v.segment_id != segment.segment_id)
            self._keep_views(path, others)

    def _forget_text(self, segment: ContextSegment) -> None:
        digest = self._digests.pop(segment.segment_id, None)
        if digest is not None and self._texts.get(digest) == segment.segment_id:
            del self._texts[digest]

    def _file(self, segment: ContextSegment, path: str) -> dict[str, Superseding]:
        views = self._views.get(path, ())
        access = _file_access(segment)
        how: Superseding = "re-read" if access == "read" else "edited"
        stale = {view.segment_id: how for view in views if _outdates(segment, view)}
        live = [view for view in views if view.segment_id not in stale]
        if access == "read" or segment.failed:
            live.append(segment)
        self._keep_views(path, live[-VIEWS_PER_FILE:])
        return stale

    def _keep_views(self, path: str, views: Iterable[ContextSegment]) -> None:
        kept = tuple(views)
        if kept:
            self._views[path] = kept
        else:
            self._views.pop(path, None)

    def _command(self, segment: ContextSegment, command: str) -> dict[str, Superseding]:
        older = self._outputs.get(command)
        self._outputs[command] = segment.segment_id
        return {} if older is None else {older: "re-run"}

    def _identical(self, segment: ContextSegment) -> list[str]:
        data = segment.text.encode("utf-8", "surrogatepass")
        digest = self._digests[segment.segment_id] = blake2b(data, digest_size=16).digest()
        older = self._texts.get(digest)
        self._texts[digest] = segment.segment_id
        return [] if older is None else [older]


def _repeatable(segment: ContextSegment) -> bool:
    """Only outputs repeat themselves; what a person or the agent says twice was meant twice."""
    if segment.part == "tool_call" or len(segment.text) < _IDENTICAL_MIN_CHARS:
        return False
    return segment.type in ("log", "code")


def _file_access(segment: ContextSegment) -> Access | None:
    """Return how a segment came by its file; code that is put in says what is there now, as a read does."""
    if segment.access is None and segment.type == "code" and segment.part is None:
        return "read"
    return segment.access if segment.access in ("read", "edit") else None


def _outdates(segment: ContextSegment, view: ContextSegment) -> bool:
    """A failed access is outdated by the next of its kind; a view by a success that covers it."""
    if view.failed:
        return _file_access(segment) in (_file_access(view), "edit")
    return not segment.failed and _covers(segment, view.line_range)


def _covers(segment: ContextSegment, lines: tuple[int, int] | None) -> bool:
    """A read replaces the views inside its range; an edit makes every view it touches stale."""
    mine = segment.line_range
    if mine is None:
        return True
    if lines is None:
        return segment.access == "edit"
    if segment.access == "edit":
        return mine[0] <= lines[1] and lines[0] <= mine[1]
    return mine[0] <= lines[0] and lines[1] <= mine[1]


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


def is_outlived(segment: ContextSegment) -> bool:
    """Return whether a newer segment took the place of a tool result.

    Its bond does not hold it: the call that it answers may be reached by the file that both name, which is
    no use of an old view of it. A stub can answer the call as well.
    """
    return segment.superseded_by is not None and segment.part == "tool_result"


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
