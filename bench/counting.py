"""A counter that measures the tokenizer's share, which is the same whoever asks for it."""

from __future__ import annotations

from time import process_time

from ctxgc.tokens import ExactCounter


class TimedCounter:
    """Counts as the default counter does, and adds up the seconds that it takes.

    The vocabulary is read before anything is measured; counts of earlier runs are not cached.
    """

    def __init__(self) -> None:
        self._counter = ExactCounter("o200k_base")
        self._counter.count("the vocabulary is read once")
        self.name = self._counter.name
        self.exact = self._counter.exact
        self._seconds = 0.0

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        start = process_time()
        try:
            return self._counter.count(text)
        finally:
            self._seconds += process_time() - start

    def take(self) -> float:
        """Return the seconds since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds
