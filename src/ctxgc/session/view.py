"""The view: the ordered messages that the model sees next, and what stood there before.

Messages have a place that never changes. What leaves is kept as it was, so that a recall or an undo
puts the same bytes back into the same place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.core import Format, Message, common_prefix, is_tombstone
from ctxgc.errors import MessageError
from ctxgc.invariants import Growing, Paired, check, follow, groups
from ctxgc.strategies import opens_turn
from ctxgc.wire import message_bytes, render

# -- Histories that are alike: the same calls and results in the same places


def calls_alike(before: Sequence[Message], now: Sequence[Message], start: int) -> bool:
    """Tell whether a history begins with the calls and results of another one, in the same places.

    Before `start` they are the same.
    """
    if len(now) < len(before):
        return False
    return all(
        old.message_id == new.message_id and tools_of(old) == tools_of(new)
        for old, new in zip(before[start:], now[start:], strict=False)
        if old is not new
    )


def tools_of(message: Message) -> list[tuple[str, str | None, bool]]:
    """Return the calls and results of a message, in order."""
    return [
        (part.kind, part.call_id, part.server_side)
        for part in message.parts
        if part.kind in ("tool_call", "tool_result")
    ]


# -- Essentials: what of a view stays when almost nothing fits


LAST_GROUPS = 2


def minimal_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return instructions, pins, the first and the last request, and the work done last."""
    return whole_groups(messages, {*_always(messages, kept), *_last(messages, LAST_GROUPS)})


def bare_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the absolute essentials: the minimal view with only the very last step of the work.

    The last error stays too, when there is one.
    """
    return whole_groups(
        messages, {*_always(messages, kept), *_last(messages, 1), *_last_error(messages)}
    )


def _always(messages: Sequence[Message], kept: Collection[str]) -> set[str]:
    requests = [m.message_id for m in messages if opens_turn(m)]
    system = [m.message_id for m in messages if m.role == "system"]
    return {*system, *requests[:1], *requests[-1:], *kept}


def _last(messages: Sequence[Message], count: int) -> set[str]:
    newest = sorted(groups(messages), key=max)[-count:]
    return {messages[place].message_id for group in newest for place in group}


def _last_error(messages: Sequence[Message]) -> set[str]:
    for message in reversed(messages):
        for part in message.parts:
            if part.is_error and not is_tombstone(part.text):
                return {message.message_id}
    return set()


def whole_groups(messages: Sequence[Message], wanted: set[str]) -> list[Message]:
    """Return the wanted messages, each with its whole group."""
    stay: set[str] = set()
    for group in groups(messages):
        ids = [messages[place].message_id for place in group]
        if not wanted.isdisjoint(ids):
            stay.update(ids)
    return [message for message in messages if message.message_id in stay]


THRIFT = "thrift"
HANDOUT = "hand-out"
"""Who reads the view, and need not read again what stayed as it was."""


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it came in, its segments, and the messages that left together with it.

    While it is in the view in an edited form, it left alone: `together` is empty.
    """

    message: Message
    segment_ids: tuple[str, ...]
    together: tuple[str, ...] = ()


class Arrival(msgspec.Struct, frozen=True):
    """That a message came in from the host: its id and what tells its content from others.

    `request` is the number of the first request that could carry it.
    """

    message_id: str
    digest: bytes
    request: int = 1


class View:
    """The messages of a session in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.originals: dict[str, Gone] = {}
        self.arrivals: list[Arrival] = []
        self.next_place = 0.0
        self._places: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, list[str]] = {}
        self._owed: set[str | None] = set()
        self._tail_from = 0
        self._seen: dict[str, int] = {}
        self._growing = Growing()

    def get(self, message_id: str) -> Message | None:
        """Return a message of the view, or None."""
        return next((m for m in self.messages if m.message_id == message_id), None)

    @property
    def waiting(self) -> Mapping[str, str]:
        """Tool calls without a result, each with the message that made it last."""
        return {call: made_by[-1] for call, made_by in self._waiting.items()}

    def check_next(self, *messages: Message) -> None:
        """Make sure that messages may come next, all of them together.

        Raises:
            MessageError: with them the history would break a promise that providers insist on.
        """
        for message in messages if self.messages else ():
            if message.format != self.messages[-1].format:
                raise wrong_format(self.messages[-1].format, message.format)
        # What stands before the last group is known to be valid, so only the end is looked at.
        known = self.messages[self._tail_from :]
        found = check([*known, *messages], complete=False, known=known)
        serious = [v for v in found if not (self._tail_from and v.promise.endswith("first"))]
        if serious:
            raise MessageError(
                f"the message cannot come next: {serious[0].text}",
                hint=f"{serious[0].fix}; ctxgc.repair() does that for a whole history",
                promise=serious[0].promise,
                call_id=serious[0].call_id,
            )

    def take(self, message: Message, request: int = 1) -> None:
        """Put a message at the end that came in before a request."""
        self._places[message.message_id] = self.next_place
        self.next_place += 1.0
        # Behind a change of the view the groups are found anew once somebody asks for them.
        if len(self._growing) == len(self.messages):
            self._growing.add(message)
        self.messages.append(message)
        self._follow_calls(message, len(self.messages) - 1)
        self.arrivals.append(Arrival(message.message_id, digest(message), request))
        self._numbers[message.message_id] = len(self.arrivals)

    def number_of(self, message_id: str) -> int | None:
        """Return the how-manieth a message was that came in; None for one of ours."""
        return self._numbers.get(message_id)

    def arrival_of(self, message_id: str) -> Arrival | None:
        """Return how a message came in; None for one of ours."""
        number = self._numbers.get(message_id)
        return None if number is None else self.arrivals[number - 1]

    def restate(self, arrivals: Sequence[Arrival]) -> None:
        """Take these, and no others, as what came in."""
        self.arrivals = list(arrivals)
        self._numbers = {known.message_id: n for n, known in enumerate(self.arrivals, 1)}

    def seen_by(self, reader: str) -> int:
        """Return how many messages, from the first on, a reader saw that are still as they were."""
        return self._seen.get(reader, 0)

    def note_seen(self, reader: str) -> None:
        """Take note that a reader has seen all messages."""
        self._seen[reader] = len(self.messages)

    def show(
        self,
        messages: Iterable[Message],
        places: Mapping[str, float] | None = None,
        *,
        same: int | None = None,
    ) -> None:
        """Show other messages from now on; new ones among them need their places.

        The first `same` are those of before, if that is known.
        """
        self._places.update(places or {})
        before, self.messages = self.messages, list(messages)
        self._growing = Growing()
        same = common_prefix(before, self.messages) if same is None else same
        self._seen = {reader: min(seen, same) for reader, seen in self._seen.items()}
        followed = len(before)
        if not calls_alike(before, self.messages, same):
            self._waiting, self._owed, self._tail_from, followed = {}, set(), 0, 0
        for place in range(followed, len(self.messages)):
            self._follow_calls(self.messages[place], place)

    def groups_of(self, messages: list[Message]) -> list[tuple[int, ...]]:
        """Return the groups of a history, oldest first; a collection asks for the same ones twice."""
        if not self._growing.is_of(messages):
            self._growing = Growing(messages)
        return self._growing.groups

    def paired(self) -> Paired:
        """Return the messages with their calls and results matched, for all who ask."""
        self.groups_of(self.messages)
        return self._growing.paired

    def left_together(self, gone: set[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each message that leaves, the group it leaves with."""
        found: dict[str, tuple[str, ...]] = {}
        for group in self.groups_of(self.messages) if gone else ():
            ids = tuple([self.messages[place].message_id for place in group])
            if gone.issuperset(ids):
                found.update(dict.fromkeys(ids, ids))
        return found

    def with_messages(self, messages: Iterable[Message]) -> list[Message]:
        """Return what the view would be with these in their places, over what stands there now."""
        now = {message.message_id: message for message in self.messages}
        now.update((message.message_id, message) for message in messages)
        return sorted(now.values(), key=lambda message: self._places[message.message_id])

    def places_for(self, new: Sequence[Message]) -> dict[str, float]:
        """Return places for the messages that have none yet: right before what follows them.

        They stand behind everything that left there, so that a recall never puts it around them.
        """
        stay = [m.message_id for m in new if m.message_id in self._places]
        taken = sorted([self._places[i] for i in (*stay, *self.originals, *self._leaving(new))])
        after = self.next_place
        places: dict[str, float] = {}
        for message in reversed(new):
            message_id = message.message_id
            if message_id in self._places:
                after = self._places[message_id]
            else:
                below = bisect_left(taken, after)
                after = (taken[below - 1] + after) / 2 if below else after - 0.5
                places[message_id] = after
        return places

    def _leaving(self, new: Sequence[Message]) -> set[str]:
        """The messages that leave and may come back; a notice never does."""
        gone = {m.message_id for m in self.messages if m.origin != "gc_notice"}
        return gone.difference(m.message_id for m in new)

    def remember_places(self, places: Mapping[str, float]) -> None:
        """Know the places of messages that are not in the view; what comes in next stands behind them."""
        self._places.update(places)
        self.next_place = max([self.next_place, *(place // 1 + 1.0 for place in places.values())])

    def place_of(self, message_id: str) -> float:
        """Return the place of a message that is or was in the view."""
        return self._places[message_id]

    def shared_with(self, messages: Sequence[Message]) -> int:
        """Return how many messages a history shares with what came in, from the beginning."""
        pairs = zip(self.arrivals, messages, strict=False)
        return next(
            (n for n, (known, message) in enumerate(pairs) if known.digest != digest(message)),
            min(len(self.arrivals), len(messages)),
        )

    def _follow_calls(self, message: Message, place: int) -> None:
        results = message.results()
        if not self._waiting and not self._owed and not results:
            self._tail_from = place
        follow(message, self._owed)
        for call in message.calls():
            self._waiting.setdefault(call, []).append(message.message_id)
        for call in results:
            # An id may be used again while its first call still waits; the nearest one is answered.
            self._waiting.get(call, [""]).pop()
            if not self._waiting.get(call):
                self._waiting.pop(call, None)


def wrong_format(known: Format, other: Format) -> MessageError:
    """Return the error for a message, or a wish, in another format than the session's."""
    return MessageError(
        f"this session speaks '{known}', not '{other}'",
        hint="use one session for each format",
        field="format",
    )


def digest(message: Message) -> bytes:
    """Return what tells two messages apart by their content."""
    return blake2b(message_bytes(message), digest_size=16).digest()


# -- The hand-out: the view as provider messages, copied once and not for every request


class Handout:
    """Gives out copies of messages that their receiver may change.

    What the receiver left as it was is given out again for the next request, since comparing it costs
    a tenth of copying it. What was changed outside is copied anew, so each view is right.
    """

    def __init__(self) -> None:
        self._datas: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []
        self._reached: list[Any] = []
        self._ends: list[int] = []
        """How many of the reached things belong to the first messages."""

    def render(self, view: View) -> list[dict[str, Any]]:
        """Return the provider's messages, equal to what came in."""
        same = view.seen_by(HANDOUT)
        self._forget(same)
        # A comparison waits for memory at each of its steps; copying a list does not, and brings near
        # what will be compared: half of the time where the memory is slow.
        self._reached.copy()
        # The interpreter compares whole lists ten times faster than we compare their items.
        if not _equal(self._copies, self._datas):
            self._renew(view)
        new = view.messages[same:]
        self._datas += [message.data for message in new]
        self._copies += render(new)
        self._reach(same)
        view.note_seen(HANDOUT)
        return self._copies.copy()

    def _forget(self, same: int) -> None:
        del self._datas[same:], self._copies[same:], self._ends[same:]
        del self._reached[self._ends[-1] if self._ends else 0 :]

    def _reach(self, start: int) -> None:
        """Note everything that a comparison of the messages from a place on will look at."""
        pairs = zip(self._datas[start:], self._copies[start:], strict=True)
        for data, copy in pairs:
            self._reached += _within(data)
            self._reached += _within(copy)
            self._ends.append(len(self._reached))

    def _renew(self, view: View) -> None:
        """Copy those messages anew that were changed outside."""
        for place, data in enumerate(self._datas):
            if not _equal(self._copies[place], data):
                self._copies[place] = render((view.messages[place],))[0]


def _within(value: Any) -> list[Any]:
    """Return a value and all that it holds."""
    found = [value]
    for each in found:
        if type(each) is dict:
            found += each.values()
        elif type(each) is list:
            found += each
    return found


def _equal(one: object, other: object) -> bool:
    try:
        return one == other
    except Exception:  # noqa: BLE001 - a receiver may put in things that cannot be compared
        return False
