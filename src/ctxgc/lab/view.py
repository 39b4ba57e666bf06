"""A view that a simple rule edits: stubs replace results, and whole units leave.

Nothing is orphaned: a result is replaced in place, and a call leaves with its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ctxgc.lab.facts import message_weight

Json = dict[str, Any]


class LabView:
    """The messages of one run so far, and what replaces each of them in the view.

    Edits are permanent: what was replaced or dropped stays so until a rule replaces it again.
    """

    def __init__(self, weigh: Callable[[Json], int] = message_weight) -> None:
        self.messages: list[Json] = []
        self.weights: list[int] = []
        self.results: list[int] = []
        self.units: list[range] = []
        self.sent = 0
        self.edits = 0
        self._weigh = weigh
        self._stubs: dict[int, Json] = {}
        self._dropped: set[int] = set()

    def take(self, history: list[Json]) -> None:
        """Add the messages that are new since the last request, which sent the ones before."""
        self.sent = len(self.messages)
        for message in history[self.sent :]:
            self._add(message)

    def _add(self, message: Json) -> None:
        index = len(self.messages)
        self.messages.append(message)
        self.weights.append(self._weigh(message))
        is_result = message["role"] == "tool"
        if is_result:
            self.results.append(index)
        start = self.units.pop().start if is_result and self.units else index
        self.units.append(range(start, index + 1))

    @property
    def head(self) -> int:
        """The length of the head, in messages: instructions and the first user message."""
        roles = [message["role"] for message in self.messages]
        return roles.index("user") + 1 if "user" in roles else 0

    @property
    def size(self) -> int:
        """The tokens of the view."""
        return sum(self.weights)

    def is_whole(self, index: int) -> bool:
        """Return whether a message is in the view, unchanged."""
        return index not in self._stubs and index not in self._dropped

    def is_dropped(self, index: int) -> bool:
        """Return whether a message has left the view."""
        return index in self._dropped

    def whole_results(self) -> list[int]:
        """Return the results that are in the view unchanged, oldest first."""
        return [index for index in self.results if self.is_whole(index)]

    def stub(self, index: int, text: str) -> Json:
        """Return the message that would replace a result."""
        return {**self.messages[index], "content": text}

    def mask(self, indexes: Iterable[int], text: str) -> None:
        """Replace results by a text, if that is shorter."""
        self.replace({index: self.stub(index, text) for index in indexes})

    def replace(self, stubs: dict[int, Json]) -> None:
        """Replace messages by others, if those are shorter; all of it is one edit."""
        lighter = {
            index: (stub, weight)
            for index, stub in stubs.items()
            if (weight := self._weigh(stub)) < self.weights[index]
        }
        for index, (stub, weight) in lighter.items():
            self._stubs[index] = stub
            self.weights[index] = weight
        self.edits += bool(lighter)

    def droppable(self) -> list[range]:
        """Return the units after the head that are in the view, oldest first, except the last one."""
        head = self.head
        return [u for u in self.units[:-1] if u.start >= head and u.start not in self._dropped]

    def drop(self, units: Iterable[range]) -> None:
        """Remove whole units from the view; all of it is one edit."""
        gone = [index for unit in units for index in unit]
        self._dropped.update(gone)
        for index in gone:
            self.weights[index] = 0
        self.edits += bool(gone)

    def drop_until(self, target: int, units: Iterable[range]) -> None:
        """Drop these units in turn until the view has at most `target` tokens."""
        size, leaving = self.size, []
        for unit in units:
            if size <= target:
                break
            leaving.append(unit)
            size -= sum(self.weights[index] for index in unit)
        self.drop(leaving)

    def view(self) -> list[Json]:
        """Return the messages to send."""
        return [
            self._stubs.get(index, message)
            for index, message in enumerate(self.messages)
            if index not in self._dropped
        ]
