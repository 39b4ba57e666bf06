"""What is still shown of a history when a simple rule edits it: stubs for results, units that left.

A rule never orphans anything: a result is replaced in its place, and a call leaves with its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ctxgc.lab.facts import message_weight

Json = dict[str, Any]


class LabView:
    """The messages of one run so far, and what stands for each of them in the view.

    Edits are frozen: what was replaced or dropped stays so until a rule replaces it again.
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
        """Read the messages that came since the last request; what stood before was sent by it."""
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
        """How many messages lead the run: instructions and the first request."""
        roles = [message["role"] for message in self.messages]
        return roles.index("user") + 1 if "user" in roles else 0

    @property
    def size(self) -> int:
        """The tokens of the view."""
        return sum(self.weights)

    def is_whole(self, index: int) -> bool:
        """Tell whether a message stands in the view as it came."""
        return index not in self._stubs and index not in self._dropped

    def is_dropped(self, index: int) -> bool:
        """Tell whether nothing stands in the view for a message."""
        return index in self._dropped

    def whole_results(self) -> list[int]:
        """Return the results that stand in the view as they came, oldest first."""
        return [index for index in self.results if self.is_whole(index)]

    def stub(self, index: int, text: str) -> Json:
        """Return the message that would stand in the place of a result."""
        return {**self.messages[index], "content": text}

    def mask(self, indexes: Iterable[int], text: str) -> None:
        """Replace results by a text, where that is the shorter one."""
        self.replace({index: self.stub(index, text) for index in indexes})

    def replace(self, stubs: dict[int, Json]) -> None:
        """Let other messages stand for these, where they are shorter; all of it is one edit."""
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
        """Return the units behind the head that are in the view, oldest first, but the last one."""
        head = self.head
        return [u for u in self.units[:-1] if u.start >= head and u.start not in self._dropped]

    def drop(self, units: Iterable[range]) -> None:
        """Let whole units leave the view; all of it is one edit."""
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
        """Return what is sent."""
        return [
            self._stubs.get(index, message)
            for index, message in enumerate(self.messages)
            if index not in self._dropped
        ]
