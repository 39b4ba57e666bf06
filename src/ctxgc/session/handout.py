"""The hand-out: the view as provider messages, copied once and not for every request."""

from __future__ import annotations

from typing import Any

from ctxgc.session.view import HANDOUT, View
from ctxgc.wire import render


class Handout:
    """Gives out copies of messages that their receiver may change.

    What the receiver left as it was is given out again for the next request, since comparing it costs
    a tenth of copying it. What was changed outside is copied anew, so each view is right.
    """

    def __init__(self) -> None:
        self._datas: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []
        self._reached: list[Any] = []
        self._ends: list[int] = []
        """How many of the reached things belong to the first messages."""

    def render(self, view: View) -> list[dict[str, Any]]:
        """Return the provider's messages, equal to what came in."""
        same = view.seen_by(HANDOUT)
        self._forget(same)
        # A comparison waits for memory at each of its steps; copying a list does not, and brings near
        # what will be compared: half of the time where the memory is slow.
        self._reached.copy()
        # The interpreter compares whole lists ten times faster than we compare their items.
        if not _equal(self._copies, self._datas):
            self._renew(view)
        new = view.messages[same:]
        self._datas += [message.data for message in new]
        self._copies += render(new)
        self._reach(same)
        view.note_seen(HANDOUT)
        return self._copies.copy()

    def _forget(self, same: int) -> None:
        del self._datas[same:], self._copies[same:], self._ends[same:]
        del self._reached[self._ends[-1] if self._ends else 0 :]

    def _reach(self, start: int) -> None:
        """Note everything that a comparison of the messages from a place on will look at."""
        pairs = zip(self._datas[start:], self._copies[start:], strict=True)
        for data, copy in pairs:
            self._reached += _within(data)
            self._reached += _within(copy)
            self._ends.append(len(self._reached))

    def _renew(self, view: View) -> None:
        """Copy those messages anew that were changed outside."""
        for place, data in enumerate(self._datas):
            if not _equal(self._copies[place], data):
                self._copies[place] = render((view.messages[place],))[0]


def _within(value: Any) -> list[Any]:
    """Return a value and all that it holds."""
    found = [value]
    for each in found:
        if type(each) is dict:
            found += each.values()
        elif type(each) is list:
            found += each
    return found


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except Exception:  # noqa: BLE001 - a receiver may put in things that cannot be compared
        return False
