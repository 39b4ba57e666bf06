"""The view: the ordered messages that the model sees next, and what stood there before.

Messages have a place that never changes. What leaves is kept as it was, so that a recall or an undo
puts the same bytes back into the same place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.core.message import Message
from ctxgc.errors import MessageError
from ctxgc.invariants import check, groups
from ctxgc.wire import message_bytes


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it came in, its segments, and the messages that left together with it."""

    message: Message
    segment_ids: tuple[str, ...]
    together: tuple[str, ...] = ()


class View:
    """The messages of a session in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.originals: dict[str, Gone] = {}
        self.digests: list[bytes] = []
        self.taken: list[str] = []
        self._places: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, str] = {}
        self._tail_from = 0
        self._next_place = 0.0

    def get(self, message_id: str) -> Message | None:
        """Return a message of the view, or None."""
        return next((m for m in self.messages if m.message_id == message_id), None)

    @property
    def waiting(self) -> dict[str, str]:
        """Tool calls without a result, each with the message that made it."""
        return dict(self._waiting)

    def check_next(self, *messages: Message) -> None:
        """Make sure that messages may come next, all of them together.

        Raises:
            MessageError: with them the history would break a promise that providers insist on.
        """
        formats = {m.format for m in (*self.messages[-1:], *messages)}
        if len(formats) > 1:
            raise MessageError(
                f"this session speaks '{self.messages[-1].format}', not '{messages[0].format}'",
                hint="use one session for each format",
                field="format",
            )
        # What stands before the last group is known to be valid, so only the end is looked at.
        tail = [*self.messages[self._tail_from :], *messages]
        found = check(tail, complete=False)
        serious = [v for v in found if not (self._tail_from and v.promise.endswith("first"))]
        if serious:
            raise MessageError(
                f"the message cannot come next: {serious[0].text}",
                hint=f"{serious[0].fix}; ctxgc.repair() does that for a whole history",
                promise=serious[0].promise,
                call_id=serious[0].call_id,
            )

    def take(self, message: Message) -> None:
        """Put a message at the end."""
        self._places[message.message_id] = self._next_place
        self._next_place += 1.0
        self.messages.append(message)
        self.taken.append(message.message_id)
        self._numbers[message.message_id] = len(self.taken)
        self.digests.append(digest(message))
        self._follow_calls(message, len(self.messages) - 1)

    def swap(self, new: Sequence[Message], gone: Sequence[Gone], places: dict[str, float]) -> None:
        """Put a new history in the place of the old one, and keep what left it as it came in."""
        for left in gone:
            self.originals[left.message.message_id] = left
        self._places.update(places)
        self.messages = list(new)
        self._replay_calls()

    def put_back(self, messages: Iterable[Message]) -> None:
        """Put messages back into their places, over what stands there now."""
        now = {m.message_id: m for m in self.messages}
        for message in messages:
            now[message.message_id] = message
            self.originals.pop(message.message_id, None)
        self.messages = sorted(now.values(), key=lambda m: self._places[m.message_id])
        self._replay_calls()

    def restore(
        self,
        messages: Sequence[Message],
        places: dict[str, float],
        originals: dict[str, Gone],
        taken: Sequence[tuple[str, bytes]],
    ) -> None:
        """Become the view that another one was."""
        self.messages = list(messages)
        self._places = dict(places)
        self._next_place = max(places.values(), default=-1.0) // 1 + 1.0
        self.originals = dict(originals)
        self.taken = [message_id for message_id, _ in taken]
        self.digests = [known for _, known in taken]
        self._numbers = {message_id: n for n, message_id in enumerate(self.taken, 1)}
        self._replay_calls()

    def _follow_calls(self, message: Message, place: int) -> None:
        if not self._waiting and not message.results():
            self._tail_from = place
        for call in message.calls():
            self._waiting[call] = message.message_id
        for call in message.results():
            self._waiting.pop(call, None)

    def _replay_calls(self) -> None:
        self._waiting, self._tail_from = {}, 0
        for place, message in enumerate(self.messages):
            self._follow_calls(message, place)

    def places_for(self, new: Sequence[Message], added: Sequence[Message]) -> dict[str, float]:
        """Return places for messages that came in between others: right before what follows them.

        They stand behind everything that left there, so that a recall never puts it around them.
        """
        wanted = {message.message_id for message in added}
        stay = (m.message_id for m in new if m.message_id not in wanted)
        taken = sorted(self._places[i] for i in {*stay, *self.originals, *self._leaving(new)})
        after = self._next_place
        places: dict[str, float] = {}
        for message in reversed(new):
            if message.message_id in wanted:
                below = bisect_left(taken, after)
                after = (taken[below - 1] + after) / 2 if below else after - 0.5
                places[message.message_id] = after
            else:
                after = self._places[message.message_id]
        return places

    def _leaving(self, new: Sequence[Message]) -> set[str]:
        """The messages that leave and may come back; a notice never does."""
        gone = {m.message_id for m in self.messages if m.origin != "gc_notice"}
        return gone.difference(m.message_id for m in new)

    def place_of(self, message_id: str) -> float:
        """Return the place of a message that is or was in the view."""
        return self._places[message_id]

    def arrival(self, message: Message) -> dict[str, Any]:
        """Return the number and the digest under which a message came in; empty for one of ours."""
        number = self._numbers.get(message.message_id)
        if number is None:
            return {}
        return {"number": number, "digest": self.digests[number - 1].hex()}

    def shared_with(self, messages: Sequence[Message]) -> int:
        """Return how many messages a history shares with what came in, from the beginning."""
        pairs = zip(self.digests, messages, strict=False)
        return next(
            (n for n, (known, message) in enumerate(pairs) if known != digest(message)),
            min(len(self.digests), len(messages)),
        )

    def forget_taken(self, count: int) -> None:
        """Take only the first `count` messages as having come in."""
        for message_id in self.taken[count:]:
            self._numbers.pop(message_id, None)
        del self.taken[count:], self.digests[count:]


def digest(message: Message) -> bytes:
    """Return what tells two messages apart by their content."""
    return blake2b(message_bytes(message), digest_size=16).digest()


def left_together(messages: Sequence[Message], gone: set[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each message that left, the group it left with."""
    found: dict[str, tuple[str, ...]] = {}
    for group in groups(messages) if gone else ():
        ids = tuple(messages[place].message_id for place in group)
        if gone.issuperset(ids):
            found.update(dict.fromkeys(ids, ids))
    return found
