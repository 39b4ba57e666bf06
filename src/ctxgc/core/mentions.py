"""Mentions: which segments hold which rare identifier; the soft links and the write barrier.

An identifier that many segments hold says nothing about any of them, so beyond `RARE` holders it is
common and its holders are forgotten. That bounds the memory and makes the work of an arrival
independent of the size of the heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import lcm

from ctxgc.core.text import identifiers

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
