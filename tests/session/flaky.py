"""A store that refuses a commit on demand."""

from __future__ import annotations

from typing import Any

from ctxgc.errors import StoreError
from ctxgc.stores import MemoryStore


class Flaky(MemoryStore):
    """Refuses a commit on demand; `commits` counts all that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.fails_at = -1

    def commit(self, *given: Any, **more: Any) -> int:
        """Write a batch, or refuse it."""
        self.commits += 1
        if self.commits == self.fails_at:
            raise StoreError("the disk is full")
        return super().commit(*given, **more)

    def fail_next(self) -> None:
        """Refuse the next commit, and only that."""
        self.fails_at = self.commits + 1
