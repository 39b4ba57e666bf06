"""How much of a sequence is as it was: what has not changed need not be looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not


def unchanged(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many items from the beginning on are the very same objects in both."""
    differing = compress(count(), map(is_not, before, now))
    return next(differing, min(len(before), len(now)))
