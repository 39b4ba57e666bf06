"""A summarizer without a model: it keeps the lines that matter most, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from ctxgc.errors import ConfigError
from ctxgc.summarizers.base import TextCounter
from ctxgc.summarizers.lines import REST, Line, worthy_lines


class ExtractiveSummarizer:
    """Picks lines of the conversation, in order and unchanged, up to a number of tokens.

    User requests come first, then decisions, errors, commands, paths, identifiers and numbers, each
    kind with half of what those before it left; what then remains goes in the same order. The limit
    is `max_tokens`, else `ratio` of what comes in. The same text gives the same summary.

    Raises:
        ConfigError: `max_tokens` is below 1, or `ratio` is not between 0 and 1.
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        *,
        ratio: float = 0.25,
        counter: TextCounter | None = None,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise ConfigError(
                f"max_tokens is {max_tokens}", hint="pass 1 or more", key="max_tokens"
            )
        if not 0 < ratio < 1:
            raise ConfigError(f"ratio is {ratio}", hint="pass a share below 1", key="ratio")
        self._max_tokens = max_tokens
        self._ratio = ratio
        self._count = _estimate if counter is None else counter.count

    def __call__(self, conversation: str) -> str:
        """Return the chosen lines; empty if not even one fits."""
        limit = self._max_tokens or int(self._count(conversation) * self._ratio)
        chosen = self._choose(worthy_lines(conversation), limit)
        return "\n".join(line.text for line in sorted(chosen, key=lambda line: line.index))

    def _choose(self, lines: Iterable[Line], limit: int) -> list[Line]:
        ranked = sorted(lines, key=lambda line: (-line.worth, line.index))
        # Chatter fills no gap: it stays only where there is nothing else.
        telling = [line for line in ranked if line.worth > REST] or ranked
        basket = _Basket(self._count)
        for _, kind in groupby(telling, key=lambda line: line.worth):
            # Half of what is left for each kind, so that one long paste does not take it all.
            basket.fill(kind, basket.used + (limit - basket.used) // 2)
        basket.fill(telling, limit)
        return list(basket.lines.values())

    def __repr__(self) -> str:
        return f"ExtractiveSummarizer(max_tokens={self._max_tokens}, ratio={self._ratio})"


class _Basket:
    """Lines that were taken, and the tokens that they cost."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.lines: dict[int, Line] = {}
        self.used = 0
        self._count = count

    def fill(self, lines: Iterable[Line], limit: int) -> None:
        for line in lines:
            if line.index in self.lines:
                continue
            cost = self._count(line.text) + 1  # with the line break that joins it to the next
            if self.used + cost <= limit:
                self.used += cost
                self.lines[line.index] = line


def _estimate(text: str) -> int:
    return len(text) // 4 + 1
