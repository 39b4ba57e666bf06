"""The view: the ordered messages that the model sees next, and what each of them was when it came in.

A message has a place that never changes. What leaves is kept as it was, so that a recall or an undo puts the
same bytes back into the same place. `compare` says how two histories differ, `BoundThinking` which signed
thinking is still valid, and `RenderCache` gives out the messages in the provider's form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.core import Format, Message, Origin, common_prefix
from ctxgc.errors import MessageError
from ctxgc.invariants import HistoryGroups, Paired, check, first_difference, follow
from ctxgc.wire import binds_thinking, message_bytes, render, strip_bound_thinking

PRICE_READER = "price"
RENDER_READER = "render"
"""Readers of the view, which need not read again what stayed as it was."""


class StoredMessage(msgspec.Struct, frozen=True):
    """A message that is not in memory: `read` returns it, given its id."""

    message_id: str
    read: Callable[[str], Message]

    @property
    def origin(self) -> Origin:
        """Only what came in is put away, or a summary; notices are stored nowhere else."""
        return "conversation"

    def message(self) -> Message:
        """Return the message, read from where it is stored."""
        return self.read(self.message_id)


Kept = Message | StoredMessage
"""A message, in memory or where it is stored."""


def in_memory(kept: Kept) -> Message:
    """Return a message, read back if it is not in memory."""
    return kept.message() if isinstance(kept, StoredMessage) else kept


class Original(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it came in, its segments, and the messages that left together with it.

    While the view shows an edited form of it, it left alone: `together` is empty.
    """

    kept: Kept
    segment_ids: tuple[str, ...]
    together: tuple[str, ...] = ()

    @property
    def message_id(self) -> str:
        """The id of the message."""
        return self.kept.message_id

    @property
    def message(self) -> Message:
        """The message, read back if it is not in memory."""
        return in_memory(self.kept)


class Arrival(msgspec.Struct, frozen=True):
    """A message that came in from the host: its id, and a digest of its content.

    `request` is the number of the first request that could carry it.
    """

    message_id: str
    digest: bytes
    request: int = 1


class PlacedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the view, and which of those that came in it is.

    `number` counts what came in from 0, and is None for what ctxgc wrote; `is_whole` says that the message is
    as it came in; `json` has its bytes.
    """

    number: int | None
    is_whole: bool
    json: bytes


class View:
    """The messages of a session in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.originals: dict[str, Original] = {}
        self.arrivals: list[Arrival] = []
        self.next_place = 0.0
        self._places: dict[str, float] = {}
        self._numbers: dict[str, int] = {}
        self._waiting: dict[str, list[str]] = {}
        self._owed: set[str | None] = set()
        self._tail_from = 0
        self._seen: dict[str, int] = {}
        self._growing = HistoryGroups()
        self.turns = 0
        """How many turns the view holds."""

    @property
    def format(self) -> Format | None:
        """The wire format of the messages, also of those that left; None before the first one."""
        left = (original.message for original in self.originals.values())
        first = self.messages[0] if self.messages else next(left, None)
        return None if first is None else first.format

    def get(self, message_id: str) -> Message | None:
        """Return a message of the view, or None."""
        return next((m for m in self.messages if m.message_id == message_id), None)

    @property
    def waiting(self) -> Mapping[str, str]:
        """Tool calls without a result, each with the message that made it last."""
        return {call: made_by[-1] for call, made_by in self._waiting.items()}

    def check_next(self, *messages: Message) -> None:
        """Check that messages may come next, all of them together.

        Raises:
            MessageError: the history would then break a rule that providers insist on.
        """
        for message in messages if self.messages else ():
            if message.format != self.messages[-1].format:
                raise wrong_format(self.messages[-1].format, message.format)
        # Everything before the last group is known to be valid, so only the end is checked.
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
        """Put a message that came in at the end; `request` is the first that could carry it."""
        self._places[message.message_id] = self.next_place
        self.next_place += 1.0
        # After a change of the view the groups are found again when they are next needed.
        if len(self._growing) == len(self.messages):
            self._growing.add(message)
        self.messages.append(message)
        self._follow_calls(message, len(self.messages) - 1)
        self.turns += message.opens_turn()
        self.arrivals.append(Arrival(message.message_id, digest(message), request))
        self._numbers[message.message_id] = len(self.arrivals)

    def number_of(self, message_id: str) -> int | None:
        """Return the 1-based arrival number of a message, or None if ctxgc created it."""
        return self._numbers.get(message_id)

    def arrival_of(self, message_id: str) -> Arrival | None:
        """Return how a message came in, or None if ctxgc created it."""
        number = self._numbers.get(message_id)
        return None if number is None else self.arrivals[number - 1]

    def restate(self, arrivals: Sequence[Arrival]) -> None:
        """Set the list of what came in."""
        self.arrivals = list(arrivals)
        self._numbers = {known.message_id: n for n, known in enumerate(self.arrivals, 1)}

    def seen_by(self, reader: str) -> int:
        """Return how many messages from the first on a reader has seen that are common_prefix since."""
        return self._seen.get(reader, 0)

    def note_seen(self, reader: str) -> None:
        """Record that a reader has seen all messages."""
        self._seen[reader] = len(self.messages)

    def show(
        self,
        messages: Iterable[Message],
        places: Mapping[str, float] | None = None,
        *,
        same: int | None = None,
    ) -> None:
        """Replace the messages of the view; new ones among them need places.

        The first `same` are known to be those of before.
        """
        self._places.update(places or {})
        before, self.messages = self.messages, list(messages)
        self._growing = HistoryGroups()
        same = common_prefix(before, self.messages) if same is None else same
        self.turns += turn_count(self.messages[same:]) - turn_count(before[same:])
        self._seen = {reader: min(seen, same) for reader, seen in self._seen.items()}
        followed = len(before)
        if not has_same_calls(before, self.messages, same):
            self._waiting, self._owed, self._tail_from, followed = {}, set(), 0, 0
        for place in range(followed, len(self.messages)):
            self._follow_calls(self.messages[place], place)

    def groups_of(self, messages: list[Message]) -> list[tuple[int, ...]]:
        """Return the groups of a history, oldest first; those of the last history asked for are kept."""
        if not self._growing.is_of(messages):
            self._growing = HistoryGroups(messages)
        return self._growing.groups

    def paired(self) -> Paired:
        """Return the messages with their calls and results matched."""
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
        """Return what the view would be with these messages in their places."""
        now = {message.message_id: message for message in self.messages}
        now.update((message.message_id, message) for message in messages)
        return sorted(now.values(), key=lambda message: self._places[message.message_id])

    def places_for(self, new: Sequence[Message]) -> dict[str, float]:
        """Return places for the messages that have none yet: right before what follows them.

        They come after everything that left there, so that a recall never puts it around them.
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
        """Note the places of messages that are not in the view; what comes in next goes after them."""
        self._places.update(places)
        self.next_place = max([self.next_place, *(place // 1 + 1.0 for place in places.values())])

    def place_of(self, message_id: str) -> float:
        """Return the place of a message that is or was in the view."""
        return self._places[message_id]

    def shared_with(self, messages: Sequence[Message], start: int = 0) -> int:
        """Return how many messages a history shares with what came in, from `start` on."""
        arrivals = self.arrivals[start:]
        pairs = zip(arrivals, messages, strict=False)
        return next(
            (n for n, (known, message) in enumerate(pairs) if known.digest != digest(message)),
            min(len(arrivals), len(messages)),
        )

    def shared_bytes(self, history: Iterable[object]) -> int:
        """Return how many messages that are given as bytes are what came in, from the beginning."""
        count = 0
        for known, given in zip(self.arrivals, history, strict=False):
            if not isinstance(given, bytes) or known.digest != _digest_of(given):
                break
            count += 1
        return count

    def placed(self) -> list[PlacedMessage]:
        """Return the messages with the numbers under which they came in."""
        return [
            PlacedMessage(
                number=None if (found := self._numbers.get(m.message_id)) is None else found - 1,
                is_whole=found is not None and m.message_id not in self.originals,
                json=message_bytes(m),
            )
            for m in self.messages
        ]

    def _follow_calls(self, message: Message, place: int) -> None:
        results = message.results()
        if not self._waiting and not self._owed and not results:
            self._tail_from = place
        follow(message, self._owed)
        for call in message.calls():
            self._waiting.setdefault(call, []).append(message.message_id)
        for call in results:
            # An id may be used again while its first call still waits; the newest call is answered.
            self._waiting.get(call, [""]).pop()
            if not self._waiting.get(call):
                self._waiting.pop(call, None)


def wrong_format(known: Format, other: Format) -> MessageError:
    """Return the error for a message, or a request for messages, in another format than the session's."""
    return MessageError(
        f"this session speaks '{known}', not '{other}'",
        hint="use one session for each format",
        field="format",
    )


def digest(message: Message) -> bytes:
    """Return a digest of the content of a message."""
    return _digest_of(message_bytes(message))


def _digest_of(source: bytes) -> bytes:
    return blake2b(source, digest_size=16).digest()


# -- How two histories differ


class HistoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """How a new history differs from the old one."""

    gone: list[Message]
    edited: list[tuple[Message, Message]]
    added: list[Message]

    def __bool__(self) -> bool:
        return bool(self.gone or self.edited or self.added)


def compare(old: Sequence[Message], new: Sequence[Message]) -> HistoryChange:
    """Return what left, what was edited (same id, other content) and what came in."""
    old, new = without_same(old, new)
    before = {message.message_id: message for message in old}
    after = {message.message_id: message for message in new}
    return HistoryChange(
        gone=[m for m in old if m.message_id not in after],
        edited=[
            (before[m.message_id], m)
            for m in new
            if m.message_id in before and before[m.message_id] is not m
            and before[m.message_id].data != m.data
        ],
        added=[m for m in new if m.message_id not in before],
    )  # fmt: skip


def without_same(
    old: Sequence[Message], new: Sequence[Message]
) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return both histories without the messages that are the same objects in the same places."""
    start = common_prefix(old, new)
    old, new = old[start:], new[start:]
    if len(old) != len(new):
        return old, new
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b]
    return [a for a, _ in pairs], [b for _, b in pairs]


def has_same_calls(before: Sequence[Message], now: Sequence[Message], start: int) -> bool:
    """Return whether a history begins with the calls and results of another one, in the same places.

    Before `start` they are known to be the same.
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


def turn_count(messages: Iterable[Message]) -> int:
    """Return how many turns the messages open."""
    return sum(message.opens_turn() for message in messages)


# -- Signed thinking


class BoundThinking:
    """Knows after which history the thinking of each message was produced, as a digest.

    A model that binds its thinking accepts it only after the exact history it was produced from. A view
    changes more than once, and what left comes back; so thinking is shown only after its own history.
    """

    def __init__(self, view: View, model: str | None) -> None:
        self.behind: dict[str, str] = {}
        self._view = view
        self._model_binds = binds_thinking(model or "")
        self._messages: list[Message] = []
        self._digests: list[bytes] = []

    @property
    def is_bound(self) -> bool:
        """Whether the model refuses thinking that comes after an edit."""
        return self._model_binds and self._view.format == "anthropic"

    def note(self, message: Message) -> None:
        """Remember the history that a message comes in after, if it thinks and its model binds that."""
        if self.is_bound and _thinks(message):
            self.behind[message.message_id] = self._digest(self._view.messages).hex()

    def strip_edited(self, new: list[Message]) -> list[Message]:
        """Return an edited view without the thinking that comes after the first edit."""
        if not self.is_bound:
            return new
        return strip_bound_thinking(new, first_difference(self._view.messages, new))

    def strip(self, new: list[Message]) -> list[Message]:
        """Return a new view without the thinking that was produced after another history.

        What comes before the first difference to the view of now is taken as it is.
        """
        if not self.is_bound:
            return new
        kept = list(new[: first_difference(self._view.messages, new)])
        last = self._digest(kept)
        for message in new[len(kept) :]:
            fits = not _thinks(message) or self.behind.get(message.message_id) == last.hex()
            for shown in [message] if fits else strip_bound_thinking([message], 0):
                kept.append(shown)
                last = _next(last, shown)
        return self._with_whole_turn(kept)

    def is_lost_in_loop(self) -> bool:
        """Return whether the calls that were answered last have lost the thinking that led to them.

        With thinking `enabled` Anthropic takes no results of such calls.
        """
        messages = self._view.messages if self.is_bound else []
        end = max((n for n, m in enumerate(messages, 1) if m.role == "assistant"), default=0)
        start = end
        while start and messages[start - 1].role == "assistant":
            start -= 1
        turn = messages[start:end]
        lost = any(m.message_id in self.behind and not _thinks(m) for m in turn)
        return lost and end < len(messages) and any(m.calls() for m in turn)

    def _with_whole_turn(self, messages: list[Message]) -> list[Message]:
        """Return a history whose last turn of the agent has all of its thinking, or none.

        Adjacent messages of the agent are one turn to the provider.
        """
        end = max((n for n, m in enumerate(messages, 1) if m.role == "assistant"), default=0)
        start = end
        while start and messages[start - 1].role == "assistant":
            start -= 1
        lost = (m.message_id in self.behind and not _thinks(m) for m in messages[start:end])
        return strip_bound_thinking(messages, start) if any(lost) else messages

    def _digest(self, messages: Sequence[Message]) -> bytes:
        """Return a digest of a history; only what changed since the last one is read."""
        known = common_prefix(self._messages, messages)
        del self._messages[known:], self._digests[known:]
        for message in messages[known:]:
            self._digests.append(_next(self._digests[-1] if self._digests else b"", message))
            self._messages.append(message)
        return self._digests[-1] if self._digests else b""


def _next(before: bytes, message: Message) -> bytes:
    """Return the digest of a history that goes on with a message."""
    return blake2b(before + digest(message), digest_size=16).digest()


def _thinks(message: Message) -> bool:
    return any(part.kind == "thinking" for part in message.parts)


# -- The provider's form


class RenderCache:
    """Gives out the view as provider messages: copies that the receiver may change.

    A copy that the receiver left common_prefix is given out again for the next request, since comparing it
    costs a tenth of copying it. What was changed outside is copied again, so each view is right.
    """

    def __init__(self) -> None:
        self._datas: list[dict[str, Any]] = []
        self._copies: list[dict[str, Any]] = []
        self._reached: list[Any] = []
        self._ends: list[int] = []
        """For each message, how many of the reached things belong to it and those before it."""

    def render(self, view: View) -> list[dict[str, Any]]:
        """Return the messages of the view in the provider's form, equal to what came in."""
        same = view.seen_by(RENDER_READER)
        self._forget(same)
        # A comparison waits for memory at each of its steps; copying a list does not, and loads what
        # will be compared into the cache: half of the time where the memory is slow.
        self._reached.copy()
        # The interpreter compares whole lists ten times faster than we compare their items.
        if not _equal(self._copies, self._datas):
            self._renew(view)
        new = view.messages[same:]
        self._datas += [message.data for message in new]
        self._copies += render(new)
        self._reach(same)
        view.note_seen(RENDER_READER)
        return self._copies.copy()

    def _forget(self, same: int) -> None:
        del self._datas[same:], self._copies[same:], self._ends[same:]
        del self._reached[self._ends[-1] if self._ends else 0 :]

    def _reach(self, start: int) -> None:
        """Note everything that a comparison of the messages from a place on will read."""
        pairs = zip(self._datas[start:], self._copies[start:], strict=True)
        for data, copy in pairs:
            self._reached += _within(data)
            self._reached += _within(copy)
            self._ends.append(len(self._reached))

    def _renew(self, view: View) -> None:
        """Copy again the messages that were changed outside."""
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
