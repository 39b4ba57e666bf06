"""A store in which something happens between two reads, as another process makes it happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxgc.stores import CollectionName, MemoryStore


class Between(MemoryStore):
    """After a collection was read, `meanwhile` happens: once, or `times` times."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] = lambda: None
        self.times = 0

    def happens(self, meanwhile: Callable[[], object], times: int = 1) -> None:
        """Let something happen after each of the next reads."""
        self.meanwhile, self.times = meanwhile, times

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection; then something happens."""
        found = super().load(session_id, collection)
        if self.times:
            self.times -= 1
            self.meanwhile()
        return found
