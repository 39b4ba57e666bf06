"""What a promise about a view looks like, and what is reported where one is broken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from ctxgc.core import FORMATS, Format, Message, Part

# -- The provider's own object of a part


def block_of(message: Message, part: Part) -> Any:
    """Return the provider's object for a part, as it is in the message."""
    return at(message.data, part.path)


def at(data: Any, path: Sequence[str | int]) -> Any:
    """Return what is at a path of keys and indices."""
    for step in path:
        data = data[step]
    return data


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One broken promise: where, in plain and in the provider's words, and what repair would do.

    `pending` marks what is legal while the turn still runs: a call at the very end that waits for
    its result.
    """

    promise: str
    index: int
    message_id: str
    text: str
    provider_error: str
    fix: str
    call_id: str | None = None
    pending: bool = False


class Invariant(ABC):
    """One promise about the messages of a view; planner, checker and tests share the object."""

    id: ClassVar[str]
    sentence: ClassVar[str]
    formats: ClassVar[tuple[Format, ...]] = FORMATS

    @abstractmethod
    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return every breach in the order of the messages, the pending ones among them."""

    def check(self, messages: Sequence[Message], *, complete: bool = True) -> list[Violation]:
        """Return the breaches of a history that is about to be sent.

        With `complete=False` the turn still runs: what is pending at its very end is not a breach.
        """
        return [breach for breach in self.breaches(messages) if complete or not breach.pending]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions at which a history that keeps the promise falls into two that do.

        Position `i` is between `messages[i - 1]` and `messages[i]`.
        """
        return frozenset(range(len(messages) + 1))


class SingleInvariant(Invariant):
    """A promise that each message keeps by itself, so that what was looked at once stays kept."""

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return every breach in the order of the messages."""
        return self.breaches_among(messages, range(len(messages)))

    @abstractmethod
    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return every breach of the messages at these places."""


def positions_outside(spans: Iterable[tuple[int, int]], length: int) -> frozenset[int]:
    """Return the positions `0..length` inside no span; a span is its first and last message."""
    steps = [0] * (length + 2)
    for first, last in spans:
        steps[first + 1] += 1
        steps[last + 1] -= 1
    free, depth = [], 0
    for position in range(length + 1):
        depth += steps[position]
        if depth == 0:
            free.append(position)
    return frozenset(free)
