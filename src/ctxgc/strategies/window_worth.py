"""Worth: how likely it is that something in a view is needed again, told from the view alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ctxgc.core.text import is_line, is_word
from ctxgc.strategies.window_constants import WindowConstants

_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_UNIT = 1_000_000
"""Worth is a whole number, so that sums do not depend on the order of a set."""


class Worth:
    """Counts who holds what, message by message, and weighs it.

    Names count by how often they were seen and whether the agent used them, lines by who said them;
    everything counts less the longer ago it was seen. `messages` is how many there are.
    """

    def __init__(self, messages: int, how: WindowConstants) -> None:
        self._how = how
        self._holders: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._used: set[str] = set()
        rated = {how.agent_line, how.view_line, how.digest_line}
        self._lines: dict[float, set[str]] = {worth: set() for worth in sorted(rated, reverse=True)}
        self._known: dict[str, int] = {}
        self._favour: dict[str, float] = {}
        self._messages = messages

    def see(self, place: int, held: Sequence[frozenset[str]], *, by_agent: bool = False) -> None:
        """Take note of what the parts of a message hold; the messages come in their order."""
        found = held[0] if len(held) == 1 else frozenset[str]().union(*held)
        self._holders.update(found)
        self._last.update(dict.fromkeys(found, place))
        if by_agent:
            self._used |= found

    def rate_lines(self, lines: Iterable[str], worth: float) -> None:
        """Take note of what some lines are worth; the highest counts."""
        if worth != self._how.other_line:
            self._lines[worth].update(lines)

    def favour(self, things: Iterable[str], ghost: float) -> None:
        """Let things count for more, since the like of what holds them was recalled."""
        for thing in things:
            self._favour[thing] = max(ghost, self._favour.get(thing, 0.0))

    @property
    def least_rate(self) -> float:
        """The worth per token below which a line is not kept."""
        return _UNIT * self._how.least_rate

    def of(self, thing: str) -> int:
        """Return the worth of something in the view."""
        known = self._known.get(thing)
        if known is None:
            favour = 1 + self._favour.get(thing, 0.0)
            known = self._known[thing] = round(_UNIT * self._weigh(thing) * favour)
        return known

    def _weigh(self, thing: str) -> float:
        age = self._messages - self._last[thing]
        holders, how = self._holders[thing], self._how
        if is_line(thing):
            worth = self._line_worth(thing)
            fading = how.slow if worth == how.agent_line else how.fast
            return float(worth * holders**how.often / age**fading)
        if is_word(thing):
            return float(how.word_worth / age**how.slow) if holders <= how.rare_word else 0.0
        worth = how.hex_worth if _HEX.fullmatch(thing) else 1.0
        worth *= 1 + how.used_by_agent if thing in self._used else 1
        return float(worth * holders**how.often / age**how.slow)

    def _line_worth(self, line: str) -> float:
        for worth, lines in self._lines.items():
            if line in lines:
                return worth
        return self._how.other_line
