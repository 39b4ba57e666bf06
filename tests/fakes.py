"""Stand-ins that every room's tests may use: a clock that tests move, counters that need no vocabulary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that moves on by `step` whenever it is read."""

    def __init__(self, now: datetime = NOW, step: timedelta = timedelta(seconds=1)) -> None:
        self.now = now
        self._step = step

    def __call__(self) -> datetime:
        """Move on, and return the time."""
        self.now += self._step
        return self.now

    def wait(self, **much: float) -> None:
        """Let time pass: `minutes=`, `hours=`, `days=`."""
        self.now += timedelta(**much)


def still() -> Clock:
    """Return a clock that stands still until a test moves it."""
    return Clock(step=timedelta())


class WordCounter:
    """One token for each word: sizes that a reader can count."""

    name = "words"
    exact = True

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())


class QuarterCounter:
    """One token for four characters, as the lab counts: fast, and never zero for a text."""

    name = "quarter"
    exact = True

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        return (len(text) + 3) // 4
