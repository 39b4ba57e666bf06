"""All promises about a view: what is broken in it, and where it may be cut.

Planner, checker and tests use these same objects. They read `Message` and `Part` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ctxgc.core import Format, Message
from ctxgc.invariants.bonds import groups
from ctxgc.invariants.pairing import Paired
from ctxgc.invariants.rules import (
    ArgumentsAreJson,
    CallsAndResultsPair,
    ContentIsPresent,
    ItemsAreUnique,
    OneResultPerCall,
    ResultsFollowTheirBatch,
    ServerToolsPair,
    ThinkingIsFollowed,
    UserSpeaksFirst,
)
from ctxgc.invariants.verbatim import ThinkingIsWhole
from ctxgc.invariants.violation import Invariant, SingleInvariant, Violation, positions_outside

ALL_INVARIANTS: tuple[Invariant, ...] = (
    CallsAndResultsPair(),
    OneResultPerCall(),
    ResultsFollowTheirBatch(),
    ServerToolsPair(),
    ArgumentsAreJson(),
    ThinkingIsWhole(),
    ThinkingIsFollowed(),
    UserSpeaksFirst(),
    ContentIsPresent(),
    ItemsAreUnique(),
)


@cache
def for_format(format: Format) -> tuple[Invariant, ...]:  # noqa: A002 - the word of the public face
    """Return the invariants that a provider format asks for."""
    return tuple(invariant for invariant in ALL_INVARIANTS if format in invariant.formats)


def check(
    messages: Sequence[Message], *, complete: bool = True, known: Sequence[Message] = ()
) -> list[Violation]:
    """Return every broken promise of a history in one format, in the order of the messages.

    Args:
        messages: the history.
        complete: False while the turn still runs: what is pending at its very end is not a breach.
        known: a history that keeps its promises. What single messages promise is looked at only for
            those that are not the very same objects there.
    """
    if not messages:
        return []
    paired = messages if isinstance(messages, Paired) else Paired(messages)
    fresh = _fresh(paired, known)
    found: list[Violation] = []
    for invariant in for_format(messages[0].format):
        if isinstance(invariant, SingleInvariant):
            found += invariant.breaches_among(paired, fresh)
        else:
            found += invariant.check(paired, complete=complete)
    return sorted(found, key=lambda violation: violation.index)


def _fresh(messages: Sequence[Message], known: Sequence[Message]) -> Sequence[int]:
    """Return the places of the messages that a known history does not hold as they are."""
    # The last message may be one that is legal nowhere else.
    same = set(map(id, known[:-1]))
    if not same:
        return range(len(messages))
    return [place for place, message in enumerate(messages) if id(message) not in same]


def cuts(messages: Sequence[Message]) -> list[int]:
    """Return the positions at which a history may be cut: no promise broken, no group parted."""
    messages = Paired(messages)
    spans = [(group[0], group[-1]) for group in groups(messages)]
    free = positions_outside(spans, len(messages))
    if messages:
        for invariant in for_format(messages[0].format):
            free &= invariant.cuts(messages)
    return sorted(free)
