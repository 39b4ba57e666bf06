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
        self._frame: FrameType | None = None
        self.is_forced = False
        """Whether a second Ctrl-C came, and was raised in the middle."""

    def begin(self) -> None:
        """Let Ctrl-C wait."""
        signal.signal(signal.SIGINT, self._note)

    def end(self) -> None:
        """Let it wait no more, and hand on what has waited."""
        signal.signal(signal.SIGINT, self._handler)
        noted, self._noted = self._noted, 0
        frame, self._frame = self._frame, None
        if noted and not self.is_forced:
            self._handler(signal.SIGINT, frame)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self not in _delays:  # its end was interrupted
            signal.signal(signal.SIGINT, self._handler)
            self._handler(number, frame)
            return
        self._noted += 1
        if self._noted == 1:
            self._frame = frame
            return
        try:
            self._handler(number, frame)
        except BaseException:
            self.is_forced = True
            raise


_delays: list[Delay] = []


@contextmanager
def uninterrupted() -> Iterator[Delay | None]:
    """Let Ctrl-C wait until this is done; only the main thread ever gets it."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield None
        return
    delay = Delay(handler)
    try:
        _delays.append(delay)
        delay.begin()
        yield delay
    finally:
        try:
            _delays[:] = [each for each in _delays if each is not delay]
        finally:
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
