"""Faults on order: refusals, delays and cut streams for the requests that come next."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request; the fields that are not set go well.

    `status` refuses it, `delay` makes it wait (seconds), `cut_after` ends its stream after that
    many events without the closing ones.
    """

    status: int | None = None
    message: str | None = None
    retry_after: float | None = None
    delay: float = 0.0
    cut_after: int | None = None


class FaultQueue:
    """Faults in the order in which requests will meet them."""

    def __init__(self) -> None:
        self._faults: deque[Fault] = deque()
        self._lock = threading.Lock()

    def add(self, fault: Fault, times: int = 1) -> None:
        """Let the next `times` requests, after those already planned, meet this fault."""
        with self._lock:
            self._faults.extend([fault] * times)

    def take(self) -> Fault | None:
        """Return the fault of the request that just came, or None when all is well."""
        with self._lock:
            return self._faults.popleft() if self._faults else None
