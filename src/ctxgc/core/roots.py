"""Roots: the segments that a named rule keeps, each with its reasons, and the index they are found by.

A rule answers in two ways: `find` names its segments from the indexes of the heap, `holds` tests
one segment. The incremental step asks `holds` of the few segments it looks at; a collection asks
`find`. A property test keeps the two answers equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import merge
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from ctxgc.core.links import Ids, enter, leave
from ctxgc.core.recall_memory import RecallMemory
from ctxgc.core.segment import ContextSegment, checked_time
from ctxgc.errors import ConfigError, InputError

# -- The index: recent messages, pins, errors, files, decisions


_PLACE = itemgetter(1)
_POSITION = attrgetter("position")


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

    def follow(self, before: ContextSegment, now: ContextSegment) -> None:
        """Follow a change of what is said about a segment: its type, task, tags or policy."""
        segment_id = now.segment_id
        for wanted, group in (
            (now.type == "decision", self.decisions),
            (is_instruction(now), self.instructions),
        ):
            if wanted:
                group.setdefault(segment_id)
            else:
                group.pop(segment_id, None)
        if before.task_id != now.task_id:
            leave(self.tasks, before.task_id or "", segment_id)
            if now.task_id is not None:
                enter(self.tasks, now.task_id, segment_id)
        if _is_said(before) != _is_said(now):
            (self._add_message if _is_said(now) else self._discard_message)(now)
        self.watch(now)

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
SESSION_INVARIANT = "session invariant"


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


if TYPE_CHECKING:
    from ctxgc.core.heap import Heap


class RootKnobs(msgspec.Struct, frozen=True, kw_only=True):
    """How far the root rules reach. Zero switches a rule with a number off.

    With `task_tokens` the current task holds only its newest segments, up to so many tokens, and none that
    is superseded: a task that fills the window must not keep everything.
    """

    recent_messages: int = 10
    recent_user_messages: int = 3
    decision_window_seconds: float = 3600.0
    recent_files: int = 5
    unresolved_errors: int = 5
    original_request: bool = True
    task_tokens: int | None = None

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if (getattr(self, field) or 0) < 0:
                raise ConfigError(f"{field} cannot be below zero", field=field)


class GCState(msgspec.Struct, frozen=True, kw_only=True):
    """What the host knows besides the heap: the time, the task, the open file, its own roots.

    `held` names further segments to keep, each with a reason; it serves session invariants and hosts
    that compute roots of their own. `let_go` names those that such a root held before, each with the rule and
    for how many requests it has not. `recalls` remembers what was recalled, up to `request`. `alongside` are
    the tokens in the window that no working segment counts.
    """

    heap: Heap
    now: datetime
    current_task_id: str | None = None
    task_dependencies: frozenset[str] = frozenset()
    active_file: str | None = None
    active_range: tuple[int, int] | None = None
    held: Mapping[str, str] = {}
    let_go: Mapping[str, tuple[str, int]] = {}
    knobs: RootKnobs = RootKnobs()
    recalls: RecallMemory | None = None
    request: int = 0
    alongside: int = 0

    def __post_init__(self) -> None:
        checked_time("now", self.now)

    def recall_weight(self, segment: ContextSegment) -> float:
        """Return how much similar segments were recalled lately; 0 if none was."""
        return self.recalls.weight(segment, self.request) if self.recalls else 0.0


class RootSet(frozenset[str]):
    """The ids of the roots, with the reasons for each."""

    reasons: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, reasons: Mapping[str, tuple[str, ...]]) -> RootSet:
        """Return the root set of these reasons."""
        roots = cls(reasons)
        roots.reasons = reasons
        return roots

    def __iter__(self) -> Iterator[str]:
        # In the order in which the rules named them: a set's own order differs between processes.
        return iter(self.reasons)

    def why(self, segment_id: str) -> tuple[str, ...]:
        """Return the reasons for a root; empty for anything else."""
        return self.reasons.get(segment_id, ())


class RootRule(msgspec.Struct, frozen=True):
    """One named reason to keep segments."""

    reason: str
    find: Callable[[GCState], Iterable[str]]
    holds: Callable[[GCState, ContextSegment], bool]


ID_SETS: Mapping[str, str] = {
    "current_task_segment_ids": "current task",
    "last_n_message_ids": "recent message",
    "pinned_segment_ids": "pinned",
    "active_file_context_segment_ids": "active file",
}
"""The sets of ids that a state of a host may have, as S0 names them, and the reasons they give."""


def compute_roots(state: GCState | object) -> RootSet:
    """Return all roots with their reasons; the work is that of naming them.

    Args:
        state: the state of a heap, whose rules find the roots; or an object or dict of a host that
            has found them itself: one or more of the sets of ids that S0 names (`pinned_segment_ids`, ...).

    Raises:
        InputError: the object is neither.
    """
    return _ruled_roots(state) if isinstance(state, GCState) else _named_roots(state)


def _named_roots(state: object) -> RootSet:
    known = state if isinstance(state, Mapping) else _attributes(state)
    sets = {field: known[field] for field in ID_SETS if field in known}
    if not sets:
        raise InputError(
            f"state must be a GCState or have sets of ids, got {type(state).__name__}",
            hint=f"give it one or more of: {', '.join(ID_SETS)}",
            field="state",
        )
    reasons: dict[str, tuple[str, ...]] = {}
    for field, ids in sets.items():
        if isinstance(ids, str):
            raise InputError(f"{field} cannot be {ids!r}", hint="give a set of ids", field=field)
        for segment_id in sorted(set(ids)):
            reasons[segment_id] = (*reasons.get(segment_id, ()), ID_SETS[field])
    return RootSet.of(reasons)


def _attributes(state: object) -> dict[str, Any]:
    return {field: getattr(state, field) for field in ID_SETS if hasattr(state, field)}


def _ruled_roots(state: GCState) -> RootSet:
    reasons: dict[str, tuple[str, ...]] = {}
    for rule in ROOT_RULES:
        reason = rule.reason
        for segment_id in rule.find(state):
            known = reasons.get(segment_id)
            if known is None:
                reasons[segment_id] = (reason,)
            elif known[-1] != reason:
                reasons[segment_id] = (*known, reason)
    for segment_id, why in state.held.items():
        if state.heap.is_working(segment_id):
            reasons[segment_id] = (*reasons.get(segment_id, ()), why)
    return RootSet.of(reasons)


def marked_roots(state: GCState) -> dict[str, str]:
    """Return the roots that somebody marked as such, each with its rule: invariants, decisions, the task.

    Unlike the other rules these hold wherever the segment is in the conversation, so every strategy must
    know them.
    """
    return named_roots(state, _MARKED)


def named_roots(state: GCState, reasons: Iterable[str]) -> dict[str, str]:
    """Return the roots of some rules only, each with the first of the rules that names it."""
    found: dict[str, str] = {}
    for reason in reasons:
        for segment_id in _RULE_OF[reason].find(state):
            found.setdefault(segment_id, reason)
    return found


def root_reasons(state: GCState, segment: ContextSegment) -> tuple[str, ...]:
    """Return the reasons that make one segment a root, without looking at the others."""
    if segment.tier != "working":
        return ()
    reasons = tuple(rule.reason for rule in ROOT_RULES if rule.holds(state, segment))
    why = state.held.get(segment.segment_id)
    return reasons if why is None else (*reasons, why)


def _task_segments(state: GCState) -> Iterable[str]:
    task = state.current_task_id
    found = () if task is None else state.heap.root_index.tasks.get(task, ())
    most = state.knobs.task_tokens
    return found if most is None else _newest(state.heap, found, most)


def _newest(heap: Heap, segment_ids: Ids, most_tokens: int) -> list[str]:
    """The last of these that nothing supersedes, as many as fit, oldest first."""
    kept: list[str] = []
    for segment in sorted(map(heap.get, segment_ids), key=_POSITION, reverse=True):
        if segment.superseded_by is not None:
            continue
        most_tokens -= segment.tokens or 0
        if most_tokens < 0:
            break
        kept.append(segment.segment_id)
    return kept[::-1]


def _in_task(state: GCState, segment: ContextSegment) -> bool:
    if state.current_task_id is None or segment.task_id != state.current_task_id:
        return False
    return state.knobs.task_tokens is None or segment.segment_id in _task_segments(state)


def _active_file(state: GCState) -> Iterable[str]:
    if state.active_file is None:
        return ()
    heap = state.heap
    held = heap.keys.holders_of_path(state.active_file)
    return [segment_id for segment_id in held if _in_active_file(state, heap.get(segment_id))]


def _in_active_file(state: GCState, segment: ContextSegment) -> bool:
    if state.active_file is None or segment.file_path != state.active_file:
        return False
    if segment.superseded_by is not None:
        return False
    mine, wanted = segment.line_range, state.active_range
    return mine is None or wanted is None or (mine[0] <= wanted[1] and wanted[0] <= mine[1])


def _latest_files(state: GCState) -> list[str]:
    """The files opened by the host first, then those the agent read or edited, newest first."""
    recent = state.heap.root_index
    found: dict[str, None] = {}
    for path in chain(reversed(recent.opened), reversed(recent.files)):
        if len(found) >= state.knobs.recent_files:
            break
        found[path] = None
    return list(found)


def _recent_file_segments(state: GCState) -> Iterable[str]:
    heap = state.heap
    for path in _latest_files(state):
        for segment_id in heap.keys.holders_of_path(path):
            if heap.get(segment_id).superseded_by is None:
                yield segment_id


def _in_recent_file(state: GCState, segment: ContextSegment) -> bool:
    if segment.file_path is None or segment.superseded_by is not None:
        return False
    return segment.file_path in _latest_files(state)


def _fresh_decision(state: GCState, segment: ContextSegment) -> bool:
    if segment.type != "decision" or not state.knobs.decision_window_seconds:
        return False
    return state.now - segment.created_at <= timedelta(seconds=state.knobs.decision_window_seconds)


def _fresh_decisions(state: GCState) -> Iterable[str]:
    heap = state.heap
    return [d for d in heap.root_index.decisions if _fresh_decision(state, heap.get(d))]


def _first_request(state: GCState) -> Iterable[str]:
    recent = state.heap.root_index
    if not state.knobs.original_request or recent.first_request is None:
        return ()
    return tuple(recent.messages.get(recent.first_request, ()))


def _last_messages(state: GCState) -> Iterable[str]:
    return state.heap.root_index.last_messages(state.knobs.recent_messages)


def _last_requests(state: GCState) -> Iterable[str]:
    return state.heap.root_index.last_requests(state.knobs.recent_user_messages)


def _last_errors(state: GCState) -> Iterable[str]:
    return state.heap.root_index.errors.last(state.knobs.unresolved_errors)


def _protected(state: GCState, segment: ContextSegment) -> bool:
    return segment.protected_until > state.heap.step


def _protected_segments(state: GCState) -> Iterable[str]:
    heap = state.heap
    return [s for s in heap.root_index.protected if _protected(state, heap.get(s))]


def _among(find: Callable[[GCState], Iterable[str]]) -> Callable[[GCState, ContextSegment], bool]:
    """Return the test for a rule that names a handful: ask whether a segment is one of them."""
    return lambda state, segment: segment.segment_id in find(state)


ROOT_RULES: tuple[RootRule, ...] = (
    RootRule("pinned", lambda st: st.heap.root_index.pinned, lambda _, s: s.pinned),
    RootRule("current task", _task_segments, _in_task),
    RootRule("active file", _active_file, _in_active_file),
    RootRule("recent file", _recent_file_segments, _in_recent_file),
    RootRule("recent message", _last_messages, _among(_last_messages)),
    RootRule("recent request", _last_requests, _among(_last_requests)),
    RootRule("recent decision", _fresh_decisions, _fresh_decision),
    RootRule(
        "instructions", lambda st: st.heap.root_index.instructions, lambda _, s: is_instruction(s)
    ),
    RootRule("original request", _first_request, _among(_first_request)),
    RootRule("unresolved error", _last_errors, _among(_last_errors)),
    RootRule(
        "open tool call",
        lambda st: st.heap.bonds.open_calls(),
        lambda st, s: st.heap.bonds.is_open(s),
    ),
    RootRule(
        SESSION_INVARIANT,
        lambda st: st.heap.root_index.invariants,
        lambda st, s: s.segment_id in st.heap.root_index.invariants,
    ),
    RootRule("recalled", _protected_segments, _protected),
)

_RULE_OF = {rule.reason: rule for rule in ROOT_RULES}
_MARKED = (SESSION_INVARIANT, "current task", "recent decision")
