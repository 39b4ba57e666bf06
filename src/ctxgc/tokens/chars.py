"""Counting without any vocabulary: an upper bound from sorts of characters alone."""

from __future__ import annotations

import math
import re

from ctxgc.tokens.classes import features
from ctxgc.tokens.counter import require_text
from ctxgc.tokens.pieces import mended

_WORD = re.compile(r"[A-Za-z]+")
_LONG_WORD = re.compile(r"[A-Za-z]{17,}")


class CharCounter:
    """Bounds a count in OpenAI's encodings from above; for a vocabulary that cannot be loaded.

    On 10,976 pieces of agent runs it was over by 83% on the whole and under by more than 2% on none. Made-up
    words (`xqzkprvb`) can cost more than it says.
    """

    name = "characters"
    exact = False

    def count(self, text: str) -> int:
        """Return a number of tokens that the true one seldom exceeds; never more than the UTF-8 bytes."""
        if not require_text(text):
            return 0
        text = mended(text)
        return min(math.ceil(_weigh(text)), len(text.encode()))


def _weigh(text: str) -> float:
    sorts = features(text)
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    blanks = text.count(" ")
    ascii_chars = len(text) - sorts.cjk - sorts.script
    symbols = ascii_chars - letters - blanks - sorts.digits - sorts.breaks - sorts.controls
    return (
        2
        + 1.3 * len(words)
        + 0.1 * letters
        + 0.9 * sum(map(len, _LONG_WORD.findall(text)))
        + 0.8 * sorts.capitals
        + 0.1 * blanks
        + 1.25 * sorts.cjk
        + 2.4 * sorts.script
        + symbols
        + sorts.digits
        + sorts.breaks
        + sorts.controls
    )
