"""An index for the root rules: recent messages, pins, errors, files, decisions.

Each set is updated as segments come and go, so the cost of finding the roots depends on the number of
roots, not on the size of the heap.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from operator import itemgetter

from ctxgc.core.keys import Ids, enter, leave
from ctxgc.core.segment import ContextSegment

_PLACE = itemgetter(1)


class ArrivalOrder:
    """A set of keys in their order of arrival, read from the newest."""

    __slots__ = ("_arrived", "_returned", "_top")

    def __init__(self) -> None:
        self._arrived: dict[str, int] = {}
        self._returned: dict[str, int] = {}
        self._top = -1

    def __contains__(self, key: object) -> bool:
        return key in self._arrived or key in self._returned

    def __len__(self) -> int:
        return len(self._arrived) + len(self._returned)

    def put(self, key: str, place: int) -> None:
        """Add a key; one that is there keeps its place."""
        if key in self:
            return
        if place >= self._top:
            self._arrived[key] = self._top = place
        else:
            self._returned[key] = place

    def place(self, key: str) -> int:
        """Return the place of a known key."""
        return self._arrived[key] if key in self._arrived else self._returned[key]

    def discard(self, key: str) -> None:
        """Remove a key."""
        self._arrived.pop(key, None)
        self._returned.pop(key, None)

    def last(self, count: int) -> Iterator[str]:
        """Return the last `count` keys, newest first."""
        if not self._returned:
            return islice(reversed(self._arrived), max(count, 0))
        returned = sorted(self._returned.items(), key=_PLACE, reverse=True)
        both = merge(reversed(self._arrived.items()), returned, key=_PLACE, reverse=True)
        return (key for key, _ in islice(both, max(count, 0)))


class RootIndex:
    """Ordered sets of working segments (and of messages and files) by what makes them roots."""

    __slots__ = (
        "_parts", "_places", "_request_places", "decisions", "errors", "files", "first_request",
        "instructions", "invariants", "messages", "opened", "pinned", "protected", "requests", "tasks",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages: dict[str, Ids] = {}
        self.requests: dict[str, Ids] = {}
        self.first_request: str | None = None
        self.pinned: dict[str, None] = {}
        self.protected: dict[str, None] = {}
        self.instructions: dict[str, None] = {}
        self.invariants: dict[str, None] = {}
        self.decisions: dict[str, None] = {}
        self.errors = ArrivalOrder()
        self.tasks: dict[str, Ids] = {}
        self.files: dict[str, None] = {}
        self.opened: dict[str, None] = {}
        self._parts: dict[str, dict[str, int]] = {}
        """The places of the parts of a message, for messages that have several."""
        self._places = ArrivalOrder()
        self._request_places = ArrivalOrder()

    def add(self, segment: ContextSegment) -> None:
        """Add a segment wherever a rule may ask for it."""
        segment_id = segment.segment_id
        if _is_said(segment):
            self._add_message(segment)
        if is_instruction(segment):
            self.instructions[segment_id] = None
        if segment.type == "decision":
            self.decisions[segment_id] = None
        if segment.failed and segment.superseded_by is None:
            self.errors.put(segment_id, segment.position)
        if segment.task_id is not None:
            enter(self.tasks, segment.task_id, segment_id)
        if segment.file_path is not None and segment.access is not None:
            self.files.pop(segment.file_path, None)
            self.files[segment.file_path] = None
        if segment.pinned or segment.protected_until > 0 or segment.tags:
            self.watch(segment)

    def watch(self, segment: ContextSegment) -> None:
        """Follow a change of a segment's protection."""
        segment_id = segment.segment_id
        for wanted, group in (
            (segment.pinned, self.pinned),
            (segment.protected_until > 0, self.protected),
            (_INVARIANT_TAG in segment.tags, self.invariants),
        ):
            if wanted and segment.tier == "working":
                group[segment_id] = None
            else:
                group.pop(segment_id, None)

    def resolve(self, segment: ContextSegment) -> None:
        """Note that an error was superseded and is no longer open."""
        self.errors.discard(segment.segment_id)

    def open_file(self, path: str) -> None:
        """Note that the user or the host opened or edited a file just now."""
        self.opened.pop(path, None)
        self.opened[path] = None

    def discard(self, segment: ContextSegment) -> None:
        """Remove a segment from every set."""
        segment_id = segment.segment_id
        for group in (
            self.pinned, self.protected, self.instructions, self.invariants, self.decisions,
        ):  # fmt: skip
            group.pop(segment_id, None)
        self.errors.discard(segment_id)
        if segment.task_id is not None:
            leave(self.tasks, segment.task_id, segment_id)
        if _is_said(segment):
            self._discard_message(segment)

    def last_messages(self, count: int) -> Iterator[str]:
        """Yield the segments of the last `count` messages, newest message first."""
        for key in self._places.last(count):
            yield from self.messages[key]

    def last_requests(self, count: int) -> Iterator[str]:
        """Yield the segments of the last `count` messages in which the user says something."""
        for key in self._request_places.last(count):
            yield from self.messages[key]

    def _add_message(self, segment: ContextSegment) -> None:
        """Add a part of a message, whose place is that of its first part."""
        key, segment_id = message_key(segment), segment.segment_id
        for first in self.messages.get(key, ()) if key not in self._parts else ():
            self._parts[key] = {first: self._places.place(key)}
        if key in self._parts:
            self._parts[key][segment_id] = segment.position
        enter(self.messages, key, segment_id)
        self._places.put(key, segment.position)
        if is_request(segment):
            enter(self.requests, key, segment_id)
            self._request_places.put(key, self._places.place(key))
            if self.first_request is None:
                self.first_request = key
        self._settle(key)

    def _discard_message(self, segment: ContextSegment) -> None:
        key, segment_id = message_key(segment), segment.segment_id
        leave(self.messages, key, segment_id)
        if key not in self.messages:
            self._places.discard(key)
        if key in self.requests:
            leave(self.requests, key, segment_id)
            if key not in self.requests:
                self._request_places.discard(key)
        if key in self._parts:
            self._parts[key].pop(segment_id, None)
            self._settle(key)

    def _settle(self, key: str) -> None:
        """Give a message the place of the first of its remaining parts."""
        parts = self._parts.get(key)
        if parts is None:
            return
        if not parts:
            del self._parts[key]
            return
        place = min(parts.values())
        for places in (self._places, self._request_places):
            if key in places and places.place(key) != place:
                places.discard(key)
                places.put(key, place)


_INVARIANT_TAG = "invariant"


def is_message(segment: ContextSegment) -> bool:
    """Return whether a segment belongs to the conversation rather than being a separate note."""
    return segment.type == "message" or segment.message_id is not None


def _is_said(segment: ContextSegment) -> bool:
    """Return whether it comes from user, agent or tools; what a host adds does not count as recent."""
    return is_message(segment) and segment.source != "enrichment"


def is_request(segment: ContextSegment) -> bool:
    """Return whether the user says something here; a tool result in a user message is not a request."""
    return segment.role == "user" and is_message(segment) and segment.part != "tool_result"


def is_instruction(segment: ContextSegment) -> bool:
    """Return whether a segment is system text or locked by policy."""
    return segment.role == "system" or segment.source == "system" or segment.policy == "locked"


def message_key(segment: ContextSegment) -> str:
    """Return what identifies the message that a segment is part of."""
    return segment.message_id or segment.segment_id
