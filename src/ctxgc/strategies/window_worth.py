"""Worth: how likely it is that something in a view is needed again, told from the view alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ctxgc.strategies.window_constants import WindowConstants
from ctxgc.strategies.window_text import LINE, WORD

_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_UNIT = 1_000_000
"""Worth is a whole number, so that sums do not depend on the order of a set."""


class Worth:
    """Counts who holds what, message by message, and weighs it.

    Names count by how often they were seen and whether the agent used them, lines by who said them;
    everything counts less the longer ago it was seen.
    """

    def __init__(self, how: WindowConstants) -> None:
        self._how = how
        self._holders: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._used: set[str] = set()
        self._lines: dict[str, float] = {}
        self._known: dict[str, int] = {}
        self._messages = 0

    def see(self, things: Iterable[str], *, by_agent: bool = False) -> None:
        """Take note of what the next message holds."""
        found = set(things)
        self._holders.update(found)
        self._last.update(dict.fromkeys(found, self._messages))
        if by_agent:
            self._used |= found
        self._messages += 1

    def rate_lines(self, things: Iterable[str], worth: float) -> None:
        """Take note of what the lines among some things are worth; the highest counts."""
        known = self._lines
        for thing in things:
            if thing.startswith(LINE) and known.get(thing, 0.0) < worth:
                known[thing] = worth

    @property
    def least_rate(self) -> float:
        """The worth per token below which a line is not kept."""
        return _UNIT * self._how.least_rate

    def of(self, thing: str) -> int:
        """Return the worth of something in the view."""
        known = self._known.get(thing)
        if known is None:
            known = self._known[thing] = round(_UNIT * self._weigh(thing))
        return known

    def _weigh(self, thing: str) -> float:
        age = self._messages - self._last[thing]
        holders, how = self._holders[thing], self._how
        if thing.startswith(WORD):
            return float(how.word_worth / age**how.slow) if holders <= how.rare_word else 0.0
        if thing.startswith(LINE):
            worth = self._lines.get(thing, how.other_line)
            fading = how.slow if worth == how.agent_line else how.fast
            return float(worth * holders**how.often / age**fading)
        worth = how.hex_worth if _HEX.fullmatch(thing) else 1.0
        worth *= 1 + how.used_by_agent if thing in self._used else 1
        return float(worth * holders**how.often / age**how.slow)
