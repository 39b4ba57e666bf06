"""What recovery asks of a session, and the two questions of S4's chart with their answers defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ctxgc.wire.overflow import Overflow


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning could do, in tokens.

    `must_stay` is what no pruning takes: roots, the last turn, and the reserve for the answer.
    `prunable` is what may leave.
    """

    must_stay: int
    prunable: int


class FixedPart(msgspec.Struct, frozen=True):
    """Something that must stay, and its tokens."""

    name: str
    tokens: int


class Recoverable(Protocol):
    """A session as recovery sees it. Sizes are tokens, all by the same counter.

    A method that cannot do its work returns False or raises a CtxgcError, and has then changed
    nothing. Recovery takes both as "no".
    """

    @property
    def limit(self) -> int:
        """The size of the window."""
        ...

    def size(self) -> int:
        """Return the size of what would be sent now."""
        ...

    def checkpoint(self, *, emergency: bool) -> bool:
        """Make a checkpoint of the present state, durably."""
        ...

    def plan(self, target: int) -> Outlook:
        """Plan the pruning down to a target and return its outlook; nothing changes."""
        ...

    def prune(self, target: int) -> bool:
        """Prune down to a target, or as near as promises allow."""
        ...

    def validate(self) -> bool:
        """Tell whether everything essential is still there and the view valid for its provider."""
        ...

    def minimal(self) -> bool:
        """Reduce the view to roots that cannot go and the last turn."""
        ...

    def checkpoint_minimum(self) -> int | None:
        """Return the minimal size of the last checkpoint that verifies; None if there is none."""
        ...

    def load_last_checkpoint(self) -> bool:
        """Go back to the last checkpoint that verifies."""
        ...

    def aggressive(self) -> bool:
        """Keep only the absolute essentials of the view."""
        ...

    def resume(self) -> None:
        """Note that work goes on from the loaded checkpoint."""
        ...

    def parts(self) -> Sequence[FixedPart]:
        """Return what must stay, with its tokens."""
        ...


def can_prune_safely(outlook: Outlook, ceiling: int) -> bool:
    """Tell whether pruning can help without taking what must stay.

    It can if there is something to prune, and if what must stay lies below the ceiling: the size at
    which the critical zone begins.
    """
    return outlook.prunable > 0 and outlook.must_stay < ceiling


def recovery_possible(checkpoint_minimum: int | None, limit: int) -> bool:
    """Tell whether a verified checkpoint exists whose minimal context fits the window."""
    return checkpoint_minimum is not None and checkpoint_minimum <= limit


def window_after(overflow: Overflow, size: int, limit: int) -> int:
    """Return the size of the window in our own tokens, as a provider's refusal shows it.

    The provider may count otherwise than we do: what it calls `used` is what we call `size`. A refusal
    without usable numbers shows that the window is smaller than the size it refused.
    """
    if overflow.kind == "tokens" and overflow.limit is not None:
        if overflow.used is not None and overflow.used > overflow.limit:
            return min(limit, size * overflow.limit // overflow.used)
        limit = min(limit, overflow.limit)
    return min(limit, max(0, size - 1))
