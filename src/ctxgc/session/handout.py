"""The hand-out: the view as provider messages, copied once and not for every request."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from ctxgc.core.message import Message
from ctxgc.wire import render


class Handout:
    """Gives out copies of messages that their receiver may change.

    What the receiver left as it was is given out again for the next request, since comparing it costs
    a tenth of copying it. What was changed outside is copied anew, so each view is right.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._datas: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []

    def render(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the provider's messages, equal to what came in."""
        same = self._unchanged(messages)
        # The interpreter compares whole lists ten times faster than we compare their items.
        if not _equal(self._copies[:same], self._datas[:same]):
            self._renew(same)
        self._messages = list(messages)
        self._datas = [message.data for message in messages]
        self._copies[same:] = render(messages[same:])
        return list(self._copies)

    def _unchanged(self, messages: Sequence[Message]) -> int:
        """Return how many messages from the beginning are those of the last time."""
        if all(map(is_, self._messages, messages)):
            return min(len(self._messages), len(messages))
        pairs = zip(self._messages, messages, strict=False)
        return next(n for n, (before, now) in enumerate(pairs) if before is not now)

    def _renew(self, count: int) -> None:
        """Copy those of the first messages anew that were changed outside."""
        for place in range(count):
            if not _equal(self._copies[place], self._datas[place]):
                self._copies[place] = render((self._messages[place],))[0]


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except Exception:  # noqa: BLE001 - a receiver may put in things that cannot be compared
        return False
