"""The newest of many: keys by their place in the order of arrival, asked for from the end.

Almost everything arrives in order and is appended. What was stashed and comes back has an old place;
it is kept apart and merged in when somebody asks, so that coming back makes nothing recent.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter

_PLACE = itemgetter(1)


class Newest:
    """An ordered set of keys, each with its place."""

    __slots__ = ("_arrived", "_returned", "_top")

    def __init__(self) -> None:
        self._arrived: dict[str, int] = {}
        self._returned: dict[str, int] = {}
        self._top = -1

    def __contains__(self, key: object) -> bool:
        return key in self._arrived or key in self._returned

    def __len__(self) -> int:
        return len(self._arrived) + len(self._returned)

    def put(self, key: str, place: int) -> None:
        """Enter a key; one that is there keeps its place."""
        if key in self:
            return
        if place >= self._top:
            self._arrived[key] = self._top = place
        else:
            self._returned[key] = place

    def place(self, key: str) -> int:
        """Return the place of a key that is there."""
        return self._arrived[key] if key in self._arrived else self._returned[key]

    def discard(self, key: str) -> None:
        """Take a key out."""
        self._arrived.pop(key, None)
        self._returned.pop(key, None)

    def last(self, count: int) -> Iterator[str]:
        """Return the keys with the last places, newest first; no more than `count`."""
        if not self._returned:
            return islice(reversed(self._arrived), max(count, 0))
        returned = sorted(self._returned.items(), key=_PLACE, reverse=True)
        both = merge(reversed(self._arrived.items()), returned, key=_PLACE, reverse=True)
        return (key for key, _ in islice(both, max(count, 0)))
