"""The search index of one session in memory, for the stores that hold their documents there.

A segment gets a fresh slot whenever its words change; slots that were given up stay in the lists of
the words until they outnumber the live ones, and are skipped.

Most indexes are asked once or never. So the first questions are answered by looking through all
segments, and the lists of all words are made for an index that is asked again.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import nlargest
from operator import itemgetter
from typing import Any

import msgspec

from ctxgc.stores.scoring import Candidate
from ctxgc.stores.search import CANDIDATES, COMMON, Entry, Query, entry, matches


class Slot(msgspec.Struct, gc=False):
    """A segment in the index."""

    key: str
    order: int
    entry: Entry


class SessionIndex:
    """Finds the segments of one session by their words."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.length = 0
        self._slots: dict[int, Slot] = {}
        self._by_key: dict[str, int] = {}
        self._lists: defaultdict[str, list[int]] | None = None
        self._next = 0
        self._was_asked = False

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, key: str, order: int, doc: dict[str, Any]) -> None:
        """Index a segment, new or changed; `order` says how new it is."""
        slot = self._by_key.get(key)
        old = None if slot is None else self._slots[slot].entry
        new = entry(doc, old)
        if slot is not None and old is not None and new.digest == old.digest:
            self._slots[slot] = Slot(key, order, new)
        else:
            self.drop(key)
            self._add(Slot(key, order, new))

    def drop(self, key: str) -> None:
        """Forget a segment."""
        slot = self._by_key.pop(key, None)
        if slot is None:
            return
        self.length -= self._slots.pop(slot).entry.length
        if self._next > 1_000 and self._next > 2 * len(self._slots):
            self._compact()

    def count(self, word: str) -> int:
        """Return how many segments have a word."""
        numbers = self._having(word)
        if self._next == len(self._slots):
            return len(numbers)
        return sum(number in self._slots for number in numbers)

    def is_worth_lists(self) -> bool:
        """Tell whether it was asked before and has no lists yet."""
        return self._was_asked and self._lists is None

    def make_lists(self) -> None:
        """Make the lists of all words; from then on they are kept up."""
        self._lists = defaultdict(list)
        for number, slot in self._slots.items():
            self._list(number, slot)

    def having(self, asked: Query) -> list[tuple[int, Slot, str]]:
        """Return the segments with all words that pass the filters: order, slot, session id."""
        lists = sorted(map(self._having, asked.words), key=len)
        common = set(lists[0]).intersection(*lists[1:]) if len(lists) > 1 else lists[0]
        found = (self._slots[number] for number in common if number in self._slots)
        return [(slot.order, slot, self.session_id) for slot in found if matches(asked, slot.entry)]

    def _having(self, word: str) -> list[int]:
        """Return the slots with a word, those given up perhaps included."""
        if self._lists is not None:
            return self._lists.get(word, [])
        self._was_asked = True
        spaced = f" {word} "
        return [number for number, slot in self._slots.items() if spaced in slot.entry.words]

    def _compact(self) -> None:
        live, had_lists = list(self._slots.values()), self._lists is not None
        self.length = self._next = 0
        self._slots, self._by_key, self._lists = {}, {}, None
        for slot in live:
            self._add(slot)
        if had_lists:
            self.make_lists()

    def _add(self, slot: Slot) -> None:
        number, self._next = self._next, self._next + 1
        self._by_key[slot.key] = number
        self._slots[number] = slot
        self.length += slot.entry.length
        self._list(number, slot)

    def _list(self, number: int, slot: Slot) -> None:
        lists = self._lists
        if lists is not None:
            for word in set(slot.entry.words.split()):
                lists[word].append(number)


class Indexes:
    """The indexes of the sessions that a search goes over, as one source.

    One of them gets its lists with each search, so that no search pays for all.
    """

    def __init__(self, indexes: list[SessionIndex]) -> None:
        self._indexes = indexes
        worth = next((index for index in indexes if index.is_worth_lists()), None)
        if worth is not None:
            worth.make_lists()

    def size(self) -> tuple[int, int]:
        """Return how many segments there are, and how many words they have together."""
        return sum(map(len, self._indexes)), sum(index.length for index in self._indexes)

    def count(self, word: str) -> int:
        """Return how many segments have a word, at most `COMMON`."""
        return min(sum(index.count(word) for index in self._indexes), COMMON)

    def newest(self, asked: Query) -> list[Candidate]:
        """Return the newest candidates that have all words and pass the filters."""
        found = [hit for index in self._indexes for hit in index.having(asked)]
        return [
            Candidate(session_id, slot.key, slot.entry.length, slot.entry.words)
            for _, slot, session_id in nlargest(CANDIDATES, found, key=itemgetter(0))
        ]
