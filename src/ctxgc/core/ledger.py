"""The token ledger: how many segments and tokens each tier holds, without looking at them.

Every segment that ever came in is in exactly one of three places: working, stashed or deleted. So
`ingested == working + stashed + deleted` after every operation, in segments and in tokens (P4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ctxgc.core.segment import ContextSegment, Tier

Dimension = Literal["type", "task", "policy", "source"]
DIMENSIONS: tuple[Dimension, ...] = ("type", "task", "policy", "source")

_Kind = tuple[str, str | None, str, str]
"""What a segment is in each dimension."""


class Amount(msgspec.Struct, frozen=True):
    """A number of segments and their tokens."""

    segments: int = 0
    tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.segments + other.segments, self.tokens + other.tokens)


class Ledger:
    """Running totals per tier, and within a tier per type, task, policy and source."""

    __slots__ = ("_books", "_deleted", "_ingested", "_tiers")

    def __init__(self) -> None:
        self._ingested = [0, 0]
        self._deleted = [0, 0]
        self._tiers: dict[Tier, list[int]] = {"working": [0, 0], "stashed": [0, 0]}
        self._books: dict[tuple[Tier, Dimension, str | None], list[int]] = {}

    def enter(self, segment: ContextSegment) -> None:
        """Count a segment that came in."""
        _post(self._ingested, 1, segment.tokens or 0)
        self._book(segment, segment.tier, 1)

    def move(self, segment: ContextSegment, before: Tier) -> None:
        """Count a segment in its present tier and no longer in the one it had before."""
        self._book(segment, before, -1)
        self._book(segment, segment.tier, 1)

    def move_all(self, segments: Iterable[ContextSegment], before: Tier, now: Tier) -> None:
        """Count many segments in a tier and no longer in the one that they had before."""
        sums: dict[_Kind, list[int]] = {}
        for s in segments:
            kind: _Kind = (s.type, s.task_id, s.policy, s.source)
            book = sums.get(kind)
            if book is None:
                book = sums[kind] = [0, 0]
            book[0] += 1
            book[1] += s.tokens or 0
        for kind, (count, tokens) in sums.items():
            self._post_all(before, kind, -count, -tokens)
            self._post_all(now, kind, count, tokens)

    def delete(self, segment: ContextSegment) -> None:
        """Count a segment as gone for good."""
        self._book(segment, segment.tier, -1)
        _post(self._deleted, 1, segment.tokens or 0)

    def restate_deleted(self, amount: Amount) -> None:
        """Carry over deletions that happened before this ledger was opened."""
        for book in (self._ingested, self._deleted):
            _post(book, amount.segments, amount.tokens)

    @property
    def ingested(self) -> Amount:
        """All that ever came in."""
        return Amount(*self._ingested)

    @property
    def working(self) -> Amount:
        """What the working tier holds."""
        return Amount(*self._tiers["working"])

    @property
    def stashed(self) -> Amount:
        """What was moved out and can be recalled."""
        return Amount(*self._tiers["stashed"])

    @property
    def deleted(self) -> Amount:
        """What is gone for good."""
        return Amount(*self._deleted)

    def amount(self, dimension: Dimension, value: str | None, tier: Tier = "working") -> Amount:
        """Return what one type, task, policy or source holds in a tier."""
        return Amount(*self._books.get((tier, dimension, value), (0, 0)))

    def by(self, dimension: Dimension, tier: Tier = "working") -> dict[str | None, Amount]:
        """Return the non-empty amounts of a dimension, by value."""
        return {
            value: Amount(*book)
            for (at, dim, value), book in self._books.items()
            if at == tier and dim == dimension and book[0]
        }

    def balanced(self) -> bool:
        """Return whether ingested equals working plus stashed plus deleted."""
        return self.ingested == self.working + self.stashed + self.deleted

    def _book(self, segment: ContextSegment, tier: Tier, sign: int) -> None:
        kind = (segment.type, segment.task_id, segment.policy, segment.source)
        self._post_all(tier, kind, sign, sign * (segment.tokens or 0))

    def _post_all(self, tier: Tier, kind: _Kind, segments: int, tokens: int) -> None:
        _post(self._tiers[tier], segments, tokens)
        books = self._books
        type_, task, policy, source = kind
        for key in (
            (tier, "type", type_),
            (tier, "task", task),
            (tier, "policy", policy),
            (tier, "source", source),
        ):
            book = books.get(key)
            if book is None:
                book = books[key] = [0, 0]
            book[0] += segments
            book[1] += tokens


def _post(book: list[int], segments: int, tokens: int) -> None:
    book[0] += segments
    book[1] += tokens
