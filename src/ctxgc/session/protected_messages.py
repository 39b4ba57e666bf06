"""The messages that must stay, and why: pins, recent recalls, locked entries, requests, system text.

Whatever makes the view smaller asks here. Strategies add what they protect on their own
(`ctxgc.strategies.protection.protect_roots`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ctxgc.budget import GCPolicy
from ctxgc.core import Heap, Message, is_tombstone
from ctxgc.invariants import groups
from ctxgc.session.accounting import Accounting
from ctxgc.session.archive import Archive, CollectionLog
from ctxgc.session.events import Events
from ctxgc.session.handles import Stash
from ctxgc.session.state import SessionState
from ctxgc.session.view import View
from ctxgc.strategies import Segmenter, frame_of, locked_messages

MINIMAL_GROUPS = 2
_IDS = "history[n].message_id is the id of a message, append() returns the ids of segments"


class ProtectedMessages:
    """Answers which messages of a session must stay, and why."""

    def __init__(
        self,
        state: SessionState,
        view: View,
        heap: Heap,
        accounting: Accounting,
        log: CollectionLog,
    ) -> None:
        self._state = state
        self._view = view
        self._heap = heap
        self._accounting = accounting
        self._log = log

    def held(self) -> set[str]:
        """Return the messages that no collection may touch: pinned, or recalled not long ago."""
        now = len(self._log.applied)
        recalled = {m for m, until in self._state.held_until.items() if until > now}
        pinned = {
            segment.message_id
            for segment in map(self._heap.get, self._heap.root_index.pinned)
            if segment.message_id is not None
        }
        return {*self._state.pinned_messages, *recalled, *pinned}

    def held_or_locked(self) -> set[str]:
        """Return the messages that stay even in an emergency: the held ones, and locked entries."""
        return self.held().union(locked_messages(self._accounting.budget))

    def reasons(self) -> dict[str, str]:
        """Return the messages that no strategy may remove or edit, each with the reason."""
        frame = frame_of(self._view.messages)
        return {
            **{message_id: self._why_held(message_id) for message_id in self.held()},
            **dict.fromkeys(frame.last_request, "it is the last request"),
            **dict.fromkeys(frame.first_request, "it is the first request"),
            **dict.fromkeys(frame.system, "it is system text"),
        }

    def minimal_view(self, messages: Sequence[Message]) -> list[Message]:
        """Return the instructions, what is held or locked, the first and last request, and the last work."""
        return minimal_view(messages, self.held_or_locked())

    def bare_view(self, messages: Sequence[Message]) -> list[Message]:
        """Return the minimal view with only the very last step of the work, and the last error."""
        return bare_view(messages, self.held_or_locked())

    def _why_held(self, message_id: str) -> str:
        recalled = self._state.held_until.get(message_id, 0) > len(self._log.applied)
        return "it was recalled not long ago" if recalled else "it is pinned"


# -- the smallest views -----------------------------------------------------------------------------


def minimal_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the instructions, `kept`, the first and last request, and the work done last."""
    last = _last_groups(messages, MINIMAL_GROUPS)
    return whole_groups(messages, {*_framed(messages, kept), *last})


def bare_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the minimal view with only the very last step of the work, and the last error."""
    last = {*_last_groups(messages, 1), *_last_error(messages)}
    return whole_groups(messages, {*_framed(messages, kept), *last})


def whole_groups(messages: Sequence[Message], wanted: set[str]) -> list[Message]:
    """Return the wanted messages, each with its whole group."""
    stay: set[str] = set()
    for group in groups(messages):
        ids = [messages[place].message_id for place in group]
        if not wanted.isdisjoint(ids):
            stay.update(ids)
    return [message for message in messages if message.message_id in stay]


def _framed(messages: Sequence[Message], kept: Collection[str]) -> set[str]:
    frame = frame_of(messages)
    return {*frame.system, *frame.first_request, *frame.last_request, *kept}


def _last_groups(messages: Sequence[Message], count: int) -> set[str]:
    newest = sorted(groups(messages), key=max)[-count:]
    return {messages[place].message_id for group in newest for place in group}


def _last_error(messages: Sequence[Message]) -> set[str]:
    for message in reversed(messages):
        for part in message.parts:
            if part.is_error and not is_tombstone(part.text):
                return {message.message_id}
    return set()


# -- pins and policies ------------------------------------------------------------------------------


class Pins:
    """Protects messages and segments by request of the user."""

    def __init__(
        self,
        *,
        state: SessionState,
        view: View,
        heap: Heap,
        segmenter: Segmenter,
        stash: Stash,
        accounting: Accounting,
        archive: Archive,
        events: Events,
    ) -> None:
        self._state = state
        self._view = view
        self._heap = heap
        self._segmenter = segmenter
        self._stash = stash
        self._accounting = accounting
        self._archive = archive
        self._events = events

    def set_pinned(self, name: str, *, pinned: bool) -> None:
        """Pin or unpin a message with all its parts, or a single segment.

        Raises:
            UnknownHandleError: nothing has this id or name.
            StoreError: it could not be made durable; nothing has changed.
        """
        is_message = self._view.get(name) is not None
        messages = {name} if is_message else set()
        before = self._state.pinned_messages
        ids = (
            self._segmenter.segment_ids(name)
            if is_message
            else (self._stash.find(name, _IDS).segment_id,)
        )
        kept = before | messages if pinned else before - messages
        with self.pinned_as(kept, dict.fromkeys(ids, pinned)):
            self._archive.save()
        self._events.emit("pinned" if pinned else "unpinned", id=name)

    @contextmanager
    def pinned_as(self, messages: frozenset[str], segments: Mapping[str, bool]) -> Iterator[None]:
        """Pin exactly these messages, and pin or unpin segments, before something is made durable.

        If that fails, the pins are as before.
        """
        changed = {
            i: pinned for i, pinned in segments.items() if self._heap.get(i).pinned != pinned
        }
        self._pin_segments(changed)
        try:
            with self._state.rollback_on_error():
                self._state.pinned_messages = messages
                yield
        except BaseException:
            self._pin_segments({segment_id: not pinned for segment_id, pinned in changed.items()})
            raise

    def set_policy(self, name: str, policy: GCPolicy) -> None:
        """Give a message, or the message of a segment, another policy.

        Raises:
            UnknownHandleError: nothing has this id or name.
            StoreError: it could not be made durable; nothing has changed.
        """
        is_message = self._view.get(name) is not None
        message_id = (name if is_message else self._stash.find(name, _IDS).message_id) or name
        chosen = GCPolicy(policy)
        with self._state.rollback_on_error():
            self._state.policies = {**self._state.policies, message_id: chosen}
            self._archive.save()
        self._accounting.set_policy(message_id, chosen)

    def _pin_segments(self, pins: Mapping[str, bool]) -> None:
        for segment_id, pinned in pins.items():
            (self._heap.pin if pinned else self._heap.unpin)(segment_id)
        self._archive.note_unsaved(pins)
