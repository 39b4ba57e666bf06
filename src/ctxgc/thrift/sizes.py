"""Sizes: the tokens of a view's messages; of a view that changed, only what changed is counted again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxgc.core.message import Message


class Sizes:
    """Knows what each message of a view has, and what any stretch of it has. `tokens` counts a message."""

    def __init__(self, tokens: Callable[[Message], int]) -> None:
        self._tokens = tokens
        self._sums = [0]

    @property
    def before(self) -> Sequence[int]:
        """The tokens before each place."""
        return self._sums

    def __len__(self) -> int:
        return len(self._sums) - 1

    def __getitem__(self, place: int) -> int:
        return self._sums[place + 1] - self._sums[place]

    def between(self, first: int, last: int) -> int:
        """Return the tokens of the messages from one place on, up to another one (not included)."""
        return self._sums[last] - self._sums[first]

    def follow(self, view: Sequence[Message]) -> None:
        """Count the messages of a view that are not counted yet."""
        for message in view[len(self) :]:
            self._sums.append(self._sums[-1] + self._tokens(message))

    def drop(self, place: int) -> None:
        """Count everything from a place on again next time."""
        del self._sums[place + 1 :]
