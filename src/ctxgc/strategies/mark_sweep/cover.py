"""The cover of a window: the lines, out of all results, that hold most of what is needed per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from ctxgc.core import Text, is_tombstone

GAP_TOKENS = 1.5
OPENING_TOKENS = 3.0

_TOKENS_PER_CHAR = 0.27
_NAME_TOKENS = 0.5


class Passage:
    """A text of which only some lines and names stay.

    `most` limits the tokens of its lines, `most_names` those of its bare names; the lines of a dead
    one count for the names and words in them only.
    """

    __slots__ = ("is_dead", "kept", "most", "most_names", "names", "per_char", "text")

    def __init__(
        self, text: Text, *, tokens: int = 0, most: float = 1.0, names: float = 1.0,
        is_dead: bool = False,
    ) -> None:  # fmt: skip
        self.text = text
        self.is_dead = is_dead
        self.per_char = tokens / max(1, text.size) if tokens else _TOKENS_PER_CHAR
        size = tokens or text.size * _TOKENS_PER_CHAR
        self.most = most * size
        self.most_names = names * size
        self.kept: list[int] = []
        self.names: list[str] = []

    def cost(self, piece: int) -> float:
        """Return the tokens of a piece."""
        return (len(self.text.lines[piece]) + 1) * self.per_char + GAP_TOKENS

    @property
    def tokens(self) -> float:
        """The tokens of all that stays."""
        names = sum(len(name) * _TOKENS_PER_CHAR + _NAME_TOKENS for name in self.names)
        return sum(map(self.cost, self.kept)) + names

    def excerpt(self) -> str:
        """Return what stays of the text."""
        return self.text.excerpt(sorted(self.kept))


class Pick(msgspec.Struct, frozen=True):
    """A piece that stays, and its tokens."""

    passage: Passage
    piece: int
    tokens: float


class Cover:
    """Chooses lines greedily; each thing counts once, and only if nothing that stays holds it.

    No line is kept whose worth per token is below `least_rate`.
    """

    def __init__(
        self, passages: Sequence[Passage], held: set[str], worth: Callable[[str], int],
        least_rate: float,
    ) -> None:  # fmt: skip
        self._passages = passages
        self._least_rate = least_rate
        self._worth = worth
        self._held = held
        self._wanted = [self._wants(passage) for passage in passages]
        self._queue: list[tuple[float, int, int]] = []

    def choose(self, budget: float) -> list[Pick]:
        """Keep the best pieces that fit, and return them in the order in which they were chosen."""
        self._queue = [
            entry for number in range(len(self._wanted)) for entry in self._offers(number)
        ]
        heapify(self._queue)
        picks: list[Pick] = []
        while self._queue:
            known, number, piece = heappop(self._queue)
            if piece not in self._wanted[number]:
                continue
            rate = self._rate(number, piece)
            # A line's worth falls as others are kept, so a stale one is looked at again.
            if -rate > known and self._queue and -rate > self._queue[0][0]:
                if rate > self._least_rate:
                    heappush(self._queue, (-rate, number, piece))
                continue
            cost = self._cost(number, piece)
            if rate > self._least_rate and cost <= budget and self._fits(number, piece):
                budget -= cost
                picks.append(self._keep(number, piece, cost))
        return picks

    def list_names(self, budget: float) -> None:
        """List the names bare that no line shows, the best per token first, while they fit."""
        holders = {
            name: passage for passage in self._passages for name in passage.text.names - self._held
        }
        for name in sorted(holders, key=lambda n: (-self._worth(n) / (len(n) + 4), n)):
            passage = holders[name]
            cost = len(name) * _TOKENS_PER_CHAR + _NAME_TOKENS
            if cost <= min(budget, passage.most_names):
                budget -= cost
                passage.most_names -= cost
                passage.names.append(name)

    def _wants(self, passage: Passage) -> dict[int, frozenset[str]]:
        """Return the things of each piece that would be gone without it."""
        found: dict[int, frozenset[str]] = {}
        text, held = passage.text, self._held
        missing = (text.names | text.words if passage.is_dead else text.things) - held
        for number, things in enumerate(text.line_things) if missing else ():
            # A line that looks like one of ours would be taken for one the next time.
            if (wanted := things & missing) and not is_tombstone(text.lines[number]):
                found[number] = wanted
        return found

    def _offers(self, number: int) -> list[tuple[float, int, int]]:
        """Return what the queue says of the pieces of a passage while none of them is kept."""
        passage, worth = self._passages[number], self._worth
        opening = 0.0 if passage.kept else OPENING_TOKENS
        return [
            (-(sum(map(worth, wanted)) / (passage.cost(piece) + opening)), number, piece)
            for piece, wanted in self._wanted[number].items()
        ]

    def _rate(self, number: int, piece: int) -> float:
        worth, held = self._worth, self._held
        total = sum([worth(t) for t in self._wanted[number][piece] if t not in held])
        return total / self._cost(number, piece)

    def _cost(self, number: int, piece: int) -> float:
        passage = self._passages[number]
        return passage.cost(piece) + (0.0 if passage.kept else OPENING_TOKENS)

    def _fits(self, number: int, piece: int) -> bool:
        passage = self._passages[number]
        return passage.cost(piece) <= passage.most

    def _keep(self, number: int, piece: int, cost: float) -> Pick:
        passage = self._passages[number]
        passage.most -= passage.cost(piece)
        is_first = not passage.kept
        passage.kept.append(piece)
        self._held.update(self._wanted[number].pop(piece))
        if is_first:
            # The others need not pay for the opening again: they are worth more than the queue says.
            for other in self._wanted[number]:
                heappush(self._queue, (-self._rate(number, other), number, other))
        return Pick(passage, piece, cost)
