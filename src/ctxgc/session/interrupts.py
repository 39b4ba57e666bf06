"""Interrupts: Ctrl-C in the middle of a change would leave half of it, so it waits for the end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


class Delay:
    """Notes the first Ctrl-C and hands it on at the end; a second one does not wait."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._noted = 0

    @property
    def is_forced(self) -> bool:
        """Whether a second Ctrl-C came, and was raised in the middle."""
        return self._noted > 1

    def begin(self) -> None:
        """Let Ctrl-C wait."""
        signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Let it wait no more, and hand on what has waited."""
        signal.signal(signal.SIGINT, self._handler)
        noted, self._noted = self._noted, 0
        if noted == 1:
            self._handler(signal.SIGINT, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted += 1
        if self._noted > 1:
            self._handler(number, frame)


_delays: list[Delay] = []


@contextmanager
def uninterrupted() -> Iterator[Delay | None]:
    """Let Ctrl-C wait until this is done; only the main thread ever gets it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield None
        return
    delay = Delay(handler)
    _delays.append(delay)
    delay.begin()
    try:
        yield delay
    finally:
        _delays.remove(delay)
        delay.end()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C through for a while, inside `uninterrupted`: nothing has changed yet."""
    if threading.current_thread() is not threading.main_thread() or not _delays:
        yield
        return
    delay = _delays[-1]
    delay.end()
    try:
        yield
    finally:
        delay.begin()
