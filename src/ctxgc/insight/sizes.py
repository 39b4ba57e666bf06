"""Sizes: tokens counted exactly for a sample, and by the sample's rate from then on.

Counting takes a second for a few megabytes, which the window now is and a long session is not.
"""

from __future__ import annotations

from collections.abc import Callable

from ctxgc.core.message import Part
from ctxgc.tokens.messages import CALL_OVERHEAD, RESULT_OVERHEAD

SAMPLE_CHARS = 150_000
"""How many characters of each kind of part are counted before the rate is trusted."""
LONGEST_SAMPLE = 20_000
"""A text may be long: of each only so much is counted for the sample."""


class Sizer:
    """Gives the tokens of parts. Without a sample size it counts everything exactly."""

    def __init__(self, count: Callable[[str], int], sample: int | None = SAMPLE_CHARS) -> None:
        self._count = count
        self._sample = sample
        self._chars: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self.estimated = 0
        """Tokens that were estimated rather than counted."""

    def part(self, part: Part) -> int:
        """Return the tokens of one part of a message, its frame included."""
        tokens = self.text(part.text, part.kind) + part.media_tokens
        if part.kind == "tool_call":
            return tokens + len(part.name or "") // 4 + CALL_OVERHEAD
        return tokens + (RESULT_OVERHEAD if part.kind == "tool_result" else 0)

    def text(self, text: str, kind: str = "text") -> int:
        """Return the tokens of a text."""
        if self._sample is None:
            return self._count(text)
        known = self._chars.get(kind, 0)
        if known < self._sample:
            return self._learn(text, kind)
        tokens = round(len(text) * self._tokens[kind] / known)
        self.estimated += tokens
        return tokens

    def _learn(self, text: str, kind: str) -> int:
        piece = text[:LONGEST_SAMPLE]
        tokens = self._count(piece)
        self._chars[kind] = self._chars.get(kind, 0) + len(piece)
        self._tokens[kind] = self._tokens.get(kind, 0) + tokens
        if len(piece) == len(text):
            return tokens
        whole = round(tokens * len(text) / len(piece))
        self.estimated += whole - tokens
        return whole
