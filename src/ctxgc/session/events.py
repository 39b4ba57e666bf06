"""Events: what happens in a session, told to whoever asked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import RLock
from typing import Any, Literal

import msgspec

from ctxgc.core import SECRET_TAG, ContextSegment, Message, find_secrets
from ctxgc.errors import InputError, MessageError

EventKind = Literal[
    "appended", "collected", "refused", "budget_updated", "zone_changed", "alert", "recalled",
    "deleted", "pinned", "unpinned", "checkpoint", "restored", "undone", "secret_found", "deduplicated",
    "thrashing",
]  # fmt: skip

_log = logging.getLogger("ctxgc")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: its number in the session, its kind, and data about it."""

    number: int
    kind: EventKind
    at: datetime
    data: dict[str, Any]


Callback = Callable[[Event], object]


class Events:
    """Numbers events and hands them on. A callback that raises is logged and never heard of again."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._callbacks: list[Callback] = []
        self._waiting: deque[Event] = deque()
        self._is_held = False
        # A thread that was interrupted while it told can tell again.
        self._telling = RLock()
        self._is_telling = False
        self.count = 0

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return what ends that."""
        if not callable(callback):
            raise InputError(
                f"callback cannot be {callback!r}", hint="give a function", field="callback"
            )
        self._callbacks.append(callback)
        return lambda: self._drop(callback)

    def emit(self, kind: EventKind, **data: Any) -> Event:
        """Tell everybody, at once or when they are not held any more."""
        self.count += 1
        event = Event(number=self.count, kind=kind, at=self._clock(), data=data)
        self._waiting.append(event)
        if not self._is_held:
            self.tell()
        return event

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let events wait for `tell`, because what they are about is not whole yet."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def tell(self) -> None:
        """Tell everybody what has waited, in order; who is telling already goes on with it."""
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                if self._is_telling:
                    return
                self._tell_all()
            finally:
                self._telling.release()

    def _tell_all(self) -> None:
        try:
            self._is_telling = True
            while self._waiting:
                self._hand_on(self._waiting.popleft())
        finally:
            self._is_telling = False

    def _hand_on(self, event: Event) -> None:
        ended: BaseException | None = None
        for callback in tuple(self._callbacks):
            try:
                callback(event)
            except Exception:  # noqa: BLE001 - a callback may raise anything
                _log.exception("an event callback raised; it is dropped")
                self._drop(callback)
            except BaseException as error:  # noqa: BLE001 - the others hear of it all the same
                ended = ended or error
        if ended is not None:
            raise ended

    def _drop(self, callback: Callback) -> None:
        if callback in self._callbacks:
            self._callbacks.remove(callback)


# -- Secrecy: what is said and done about likely keys in what comes in. Their values are never tol


def refuse_secrets(messages: Sequence[Message]) -> None:
    """Make sure that no message holds a likely key.

    Raises:
        MessageError: one does; the message names the rule and the part, never the value.
    """
    for number, message in enumerate(messages, 1):
        for place, part in enumerate(message.parts, 1):
            for secret in find_secrets(part.text)[:1]:
                raise MessageError(
                    f"part {place} ({part.kind}) of message {number} holds what looks like "
                    f"a key of the kind '{secret.rule}'",
                    hint="take it out, or set the key 'secrets' to 'mark' or 'mask'",
                    rule=secret.rule,
                    part=place,
                )


def tell_secrets(events: Events, segments: Iterable[ContextSegment]) -> None:
    """Tell which of these segments hold likely keys, and of which kind."""
    for segment in segments:
        for tag in segment.tags:
            if tag.startswith(SECRET_TAG):
                rule = tag.removeprefix(SECRET_TAG)
                events.emit("secret_found", segment_id=segment.segment_id, rule=rule)
