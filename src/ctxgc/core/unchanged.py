"""How much of a sequence is as it was: what has not changed need not be looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_


def unchanged(before: Sequence[object], now: Sequence[object]) -> int:
    """Return how many items from the beginning on are the very same objects in both."""
    # The interpreter compares thousands of items in the time that we take for a hundred.
    if all(map(is_, before, now)):
        return min(len(before), len(now))
    return list(map(is_, before, now)).index(False)
