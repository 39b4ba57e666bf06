"""What was undone: messages that somebody brought back, and that are left alone for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

LEFT_ALONE = 32
"""For how many requests what somebody undid is not collected again by itself."""


class Undone:
    """Knows until which request a message is left alone."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}

    def note(self, message_ids: Iterable[str], request: int) -> None:
        """Leave these messages alone, and those that still are, for some requests from now on."""
        both = [*self.left_alone(request), *message_ids]
        self._until = dict.fromkeys(both, request + LEFT_ALONE)

    def left_alone(self, request: int) -> set[str]:
        """Return the messages that are left alone before a request."""
        return {message_id for message_id, until in self._until.items() if until > request}

    def clear(self) -> None:
        """Somebody collects by hand: what was undone before counts no longer."""
        self._until = {}

    def to_doc(self) -> dict[str, int]:
        """Return it as JSON values."""
        return dict(self._until)

    def restate(self, doc: Mapping[str, int]) -> None:
        """Be what a document says."""
        self._until = dict(doc)
