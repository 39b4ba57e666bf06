"""The clock of a replay: it shows the times that a transcript recorded."""

from __future__ import annotations

from datetime import UTC, datetime

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of messages of which no time is known."""


class TranscriptClock:
    """Shows the time of the newest message that was read; it never goes back."""

    def __init__(self, start: datetime = LONG_AGO) -> None:
        self._now = start

    def __call__(self) -> datetime:
        """Return the time that is shown now."""
        return self._now

    def advance(self, moment: datetime | None) -> None:
        """Show this time from now on, unless it is earlier than the present one or not known."""
        if moment is not None and moment > self._now:
            self._now = moment
