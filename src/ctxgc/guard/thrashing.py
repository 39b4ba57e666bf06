"""Thrashing: what leaves comes back again and again, or collections follow each other and save little.

Then collecting costs more than it saves. Collections for the price pause, each time twice as long as the
time before; where room must be made, the next collection goes deeper, so that the one after it comes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

SEEN = 24
"""How many of the messages that left last are looked at."""
SOON = 8
"""Within how many requests a message comes back that should have stayed."""
LEAST_BACK = 3
SHARE = 0.25
FIRST_PAUSE = 8
LONGEST_PAUSE = 256
ROW = 3
"""How many collections in quick succession are too many."""
CLOSE = 2
LITTLE = 0.1
DEEPER = 0.75
"""The share of the usual target that a deeper collection has. Recorded runs ask for nothing back, so none
of these numbers can be fitted on them."""


class Thrash(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: of `left` messages `came_back` so many, or so many collections in a row.

    Collections for the price pause for the next `pause` requests.
    """

    left: int = 0
    came_back: int = 0
    in_a_row: int = 0
    pause: int = 0


class ThrashBreaker:
    """Watches what leaves and what comes back; requests are counted by the caller."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._back: set[str] = set()
        self._pause = FIRST_PAUSE
        self._paused_until = 0
        self._calm = 0
        self._row = 0
        self._made_room = -SOON
        self._deeper = False

    def is_paused(self, request: int) -> bool:
        """Return whether nothing may be collected for the price alone before a request."""
        return request < self._paused_until

    def note_left(self, message_ids: Iterable[str], request: int) -> None:
        """Take note of messages that left the view, or were shortened, before a request."""
        for message_id in message_ids:
            self._left.pop(message_id, None)
            self._back.discard(message_id)
            self._left[message_id] = request
            self._calm += 1
        while len(self._left) > SEEN:
            oldest = next(iter(self._left))
            del self._left[oldest]
            self._back.discard(oldest)
        if self._calm > SEEN:
            self._pause = FIRST_PAUSE

    def note_back(self, message_ids: Iterable[str], request: int) -> Thrash | None:
        """Take note of messages that were asked for again; return what is found when that is too often.

        During a pause it is found no second time, but the next collection that makes room goes deeper.
        """
        for message_id in message_ids:
            since = self._left.get(message_id)
            if since is not None and request - since <= SOON:
                self._back.add(message_id)
        if len(self._back) < LEAST_BACK or len(self._back) <= SHARE * len(self._left):
            return None
        found = Thrash(left=len(self._left), came_back=len(self._back), pause=self._pause)
        self._left, self._back, self._calm = {}, set(), 0
        self._deeper = True
        if self.is_paused(request):
            return None
        self._paused_until = request + self._pause
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        return found

    def note_room(self, request: int, won: float) -> Thrash | None:
        """Note a collection that had to make room and freed this share of the window."""
        is_close = request - self._made_room <= CLOSE
        self._made_room = request
        self._row = self._row + 1 if is_close and won < LITTLE else 1
        if self._row < ROW:
            return None
        self._row, self._deeper = 0, True
        return Thrash(in_a_row=ROW)

    def take_depth(self) -> float:
        """Return the share of its target that the next collection has that must make room."""
        depth = DEEPER if self._deeper else 1.0
        self._deeper = False
        return depth

    def to_doc(self) -> dict[str, Any]:
        """Return all that is known as JSON values."""
        return {
            "left": [list(each) for each in self._left.items()],
            "back": sorted(self._back),
            "pause": self._pause,
            "paused_until": self._paused_until,
            "calm": self._calm,
            "row": self._row,
            "made_room": self._made_room,
            "deeper": self._deeper,
        }

    def restate(self, doc: Mapping[str, Any]) -> None:
        """Take the state that a document describes; what it leaves out stays."""
        self._left = dict(doc.get("left", self._left))
        self._back = set(doc.get("back", self._back))
        self._pause = doc.get("pause", self._pause)
        self._paused_until = doc.get("paused_until", self._paused_until)
        self._calm = doc.get("calm", self._calm)
        self._row = doc.get("row", self._row)
        self._made_room = doc.get("made_room", self._made_room)
        self._deeper = doc.get("deeper", self._deeper)
