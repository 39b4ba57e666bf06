"""Which children of a budget a message belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ctxgc.budget.source import InstructionSource
from ctxgc.errors import InputError

Place = tuple[InstructionSource, str]


class MessageIndex:
    """Message id -> children, and back by counting."""

    def __init__(self) -> None:
        self._places: dict[str, dict[Place, None]] = {}
        self._sizes: dict[Place, int] = {}

    def add(self, source: InstructionSource, child_key: str, message_ids: Iterable[str]) -> None:
        """Note that this child holds these messages."""
        ids = set(message_ids)
        self._sizes[source, child_key] = len(ids)
        for message_id in ids:
            self._places.setdefault(message_id, {})[source, child_key] = None

    def remove(self, source: InstructionSource, child_key: str, message_ids: Iterable[str]) -> None:
        """Forget this child."""
        place = (source, child_key)
        self._sizes.pop(place, None)
        for message_id in set(message_ids):
            places = self._places[message_id]
            del places[place]
            if not places:
                del self._places[message_id]

    def places(self, message_id: str) -> tuple[Place, ...]:
        """Return the children that hold this message, in order of entry."""
        return tuple(self._places.get(message_id, ()))

    def whole_places(self, message_ids: set[str]) -> tuple[Place, ...]:
        """Return the children that hold nothing but these messages.

        Raises:
            InputError: a child holds one of them and another message.
        """
        covered = Counter(place for name in sorted(message_ids) for place in self.places(name))
        for place, count in covered.items():
            if count < self._sizes[place]:
                raise InputError(
                    f"budget child {place[1]!r} also holds messages that would stay",
                    hint="remove all messages of the child, or none",
                    child_key=place[1],
                )
        return tuple(covered)
