"""BM25: what a segment is worth for the words of a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from math import log
from typing import NamedTuple

K1 = 1.2
B = 0.75

Scored = tuple[float, str, str]


class Candidate(NamedTuple):
    """A segment to be scored."""

    session_id: str
    key: str
    length: int
    words: str


class Scale(NamedTuple):
    """What BM25 needs besides a segment: words between blanks with their weights, and the lengths."""

    weights: list[tuple[str, float]]
    flat: float
    slope: float

    @classmethod
    def of(cls, known: Sequence[tuple[int, str]], size: tuple[int, int]) -> Scale:
        """Return the scale for words with their counts, rarest first."""
        segments, total = size
        average = max(total, 1) / max(segments, 1)
        weights = [
            (f" {word} ", (K1 + 1) * log(1 + (segments - count + 0.5) / (count + 0.5)))
            for count, word in known
        ]
        return cls(weights, K1 * (1 - B), K1 * B / average)

    def score(self, candidate: Candidate) -> Scored:
        """Return the score, negative so that the best is the least, and whose it is."""
        session_id, key, length, text = candidate
        score, norm = 0.0, self.flat + self.slope * length
        for word, weight in self.weights:
            times = text.count(word)
            if times:
                score -= weight * times / (times + norm)
        return score, session_id, key


def best(scored: Iterable[Scored], limit: int) -> list[Scored]:
    """Return the best with their true scores; equals stand in the order of session id and key."""
    return [(-score, session_id, key) for score, session_id, key in nsmallest(limit, scored)]
