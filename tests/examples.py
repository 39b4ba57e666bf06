"""How many examples a slow property gets: a part of what the Hypothesis profile gives the others."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def one_in(divisor: int, **more: Any) -> settings:
    """Return settings with one example where others have `divisor`, in every profile."""
    return settings(max_examples=max(settings().max_examples // divisor, 5), **more)
