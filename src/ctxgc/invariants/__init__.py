"""One promise about a view per file: what is broken in it, and where it may be cut.

Planner, checker and tests use these same objects. They read `Message` and `Part` only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Format, Message
from ctxgc.invariants.arguments import ArgumentsAreJson
from ctxgc.invariants.batch import ResultsFollowTheirBatch
from ctxgc.invariants.content import ContentIsPresent
from ctxgc.invariants.first import UserSpeaksFirst
from ctxgc.invariants.follow import ThinkingIsFollowed
from ctxgc.invariants.groups import anchors, groups
from ctxgc.invariants.pair import CallsAndResultsPair
from ctxgc.invariants.pairs import Paired
from ctxgc.invariants.server import ServerToolsPair
from ctxgc.invariants.single import OneResultPerCall
from ctxgc.invariants.unique import ItemsAreUnique
from ctxgc.invariants.verbatim import ThinkingIsWhole
from ctxgc.invariants.violation import Invariant, Violation, positions_outside

__all__ = [
    "ALL_INVARIANTS",
    "Invariant",
    "Violation",
    "anchors",
    "check",
    "cuts",
    "for_format",
    "groups",
]

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


def for_format(format: Format) -> tuple[Invariant, ...]:  # noqa: A002 - the word of the public face
    """Return the invariants that a provider format asks for."""
    return tuple(invariant for invariant in ALL_INVARIANTS if format in invariant.formats)


def check(messages: Sequence[Message], *, complete: bool = True) -> list[Violation]:
    """Return every broken promise of a history in one format, in the order of the messages."""
    if not messages:
        return []
    paired = messages if isinstance(messages, Paired) else Paired(messages)
    found = [
        violation
        for invariant in for_format(messages[0].format)
        for violation in invariant.check(paired, complete=complete)
    ]
    return sorted(found, key=lambda violation: violation.index)


def cuts(messages: Sequence[Message]) -> list[int]:
    """Return the positions at which a history may be cut: no promise broken, no group parted."""
    messages = Paired(messages)
    spans = [(group[0], group[-1]) for group in groups(messages)]
    free = positions_outside(spans, len(messages))
    if messages:
        for invariant in for_format(messages[0].format):
            free &= invariant.cuts(messages)
    return sorted(free)
