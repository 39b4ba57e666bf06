"""The hand-out: the view as provider messages, copied once and not for every request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxgc.core.message import Message
from ctxgc.core.unchanged import unchanged
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
        same = unchanged(self._messages, messages)
        # The interpreter compares whole lists ten times faster than we compare their items.
        if not _equal(self._copies[:same], self._datas[:same]):
            self._renew(same)
        new = messages[same:]
        self._messages[same:] = new
        self._datas[same:] = [message.data for message in new]
        self._copies[same:] = render(new)
        return list(self._copies)

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
