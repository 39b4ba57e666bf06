"""What must stay, and what comes back: by its handle, by a search, or because a new message names it."""

from __future__ import annotations

import uuid
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, takewhile

import msgspec

from ctxgc.collector import (
    bare_view,
    kept_always,
    locked_messages,
    minimal_view,
    root_knobs,
    root_messages,
    whole_groups,
)
from ctxgc.core import (
    RARE,
    SESSION_INVARIANT,
    ContextSegment,
    GCState,
    Message,
    describe,
    identifiers,
    is_tombstone,
    marked_roots,
    mask_secrets,
    named_roots,
    note,
)
from ctxgc.errors import PlanError
from ctxgc.guard import Thrash
from ctxgc.session.apply import ViewEditor
from ctxgc.session.archive import Hit, excerpt
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.view import HistoryChange
from ctxgc.stores import SearchFilters
from ctxgc.wire import text_message

# -- The messages that must stay, and why


_RULES = {
    "instructions": "it is system text",
    "locked": "its policy is LOCKED",
    "original request": "it is the first request",
    "last request": "it is the last request",
    "open tool call": "a tool call of it waits for its result",
    "compaction": "it is the provider's newest compaction",
    "current task": "it belongs to the current task",
    "recent decision": "it is a recent decision",
    SESSION_INVARIANT: "it is an invariant of the session",
}
"""How a rule is told to the author of a plugin; pins have words of their own."""


def gc_state(core: SessionCore, target_tokens: int | None = None) -> GCState:
    """Return what the root rules have to know: the heap, the time, the task and the active file."""
    options, state, limit = core.options, core.state, core.accounting.budget.context_limit
    return GCState(
        heap=core.heap,
        now=options.clock(),
        current_task_id=state.task_id,
        task_dependencies=state.task_dependencies,
        active_file=state.active_file,
        active_range=state.active_range,
        knobs=root_knobs(options.config, limit, target_tokens),
        recalls=state.ghosts,
        request=state.requests,
    )


class ProtectedMessages(SessionPart):
    """Answers which messages of a session must stay, and why."""

    def held(self, target_tokens: int | None = None) -> set[str]:
        """Return the messages that no collection, down to a target if one is given, may touch.

        They are pinned, recalled not long ago, invariants, decisions of the last hour, the newest of the
        current task, or what a configured rule always keeps. In an emergency decisions and the task give
        way, see `held_or_locked`.
        """
        return self.pinned() | self.marked(target_tokens).keys()

    def held_while_there_is_room(self) -> set[str]:
        """Return the messages that no cut for the price may touch: those held but for the current task.

        What of a task is in work is alive anyway; the rest of it would only be kept from being cheap. What
        the host has open in its editor is held as well, however long it is idle.
        """
        marked = {m for m, rule in self.marked().items() if rule != "current task"}
        active = self._by_message(named_roots(gc_state(self._core), ("active file",)))
        return self.pinned().union(marked, active)

    def marked(self, target_tokens: int | None = None) -> dict[str, str]:
        """Return the messages that an annotation makes roots, each with the rule.

        The current task holds a share of what a collection leaves, so less where the target is deeper; and
        neither it nor decisions hold more turns than `max_turns`.
        """
        index, always = self._heap.root_index, self.kept_always()
        if not (index.invariants or index.decisions or self._state.task_id):
            return always
        found = self._by_message(marked_roots(gc_state(self._core, target_tokens)))
        most = self._options.config.max_turns
        return always | (found if most is None else self._in_newest_turns(found, most))

    def kept_always(self) -> dict[str, str]:
        """Return the messages that a configured rule of `always_keep` holds, each with the rule."""
        config = self._options.config
        if not config.priorities:
            return {}
        return self._by_message(kept_always(gc_state(self._core), config.matrix))

    def _by_message(self, rules: Mapping[str, str]) -> dict[str, str]:
        segments = map(self._heap.get, rules)
        return {s.message_id: rules[s.segment_id] for s in segments if s.message_id is not None}

    def _in_newest_turns(self, marked: dict[str, str], most: int) -> dict[str, str]:
        """Return what is marked without the oldest that would keep more turns than there may be.

        Invariants stay, as pins do: who sets them wants them whatever the limit.
        """
        messages = self._view.messages
        turns = accumulate(message.opens_turn() for message in messages)
        turn_of = {m.message_id: turn for m, turn in zip(messages, turns, strict=True)}
        firm = {m: rule for m, rule in marked.items() if rule == SESSION_INVARIANT}
        rules = root_messages(messages, self.pinned(), self._accounting.budget, firm)
        held = {
            turn_of.get(message_id, 0) for _, message_ids in rules for message_id in message_ids
        }
        held.discard(0)
        for message_id in sorted(marked.keys() - firm, key=lambda m: -turn_of.get(m, 0)):
            turn = turn_of.get(message_id, 0)
            if turn in held or len(held) < most:
                held.add(turn)
                firm[message_id] = marked[message_id]
        return {m: rule for m, rule in marked.items() if m in firm}

    def pinned(self) -> set[str]:
        """Return the messages that are pinned or were recalled not long ago."""
        now = len(self._log.applied)
        recalled = {m for m, until in self._state.held_until.items() if until > now}
        pinned = {
            segment.message_id
            for segment in map(self._heap.get, self._heap.root_index.pinned)
            if segment.message_id is not None
        }
        return {*self._state.pinned_messages, *recalled, *pinned}

    def held_or_locked(self) -> set[str]:
        """Return the messages that stay even in an emergency.

        They are pins, recalls, invariants, locked entries, and what a configured rule always keeps.
        """
        invariants = [m for m, rule in self.marked().items() if rule == SESSION_INVARIANT]
        locked = locked_messages(self._accounting.budget)
        return self.pinned().union(invariants, locked, self.kept_always())

    def reasons(self, target_tokens: int | None = None) -> dict[str, str]:
        """Return the messages that no strategy may remove or edit, each with the reason."""
        found: dict[str, str] = {}
        messages, budget = self._view.messages, self._accounting.budget
        marked = self.marked(target_tokens)
        rules = root_messages(messages, self.pinned(), budget, marked)
        # A first request is locked because it is one: that says more.
        for rule, message_ids in sorted(rules, key=lambda each: each[0] == "locked"):
            for message_id in message_ids:
                why = _RULES.get(rule) or self._why_held(message_id, rule)
                found.setdefault(message_id, why)
        return found

    def minimal_view(self, messages: Sequence[Message]) -> list[Message]:
        """Return the instructions, what is held or locked, the first and last request, and the last work."""
        return minimal_view(messages, self.held_or_locked())

    def bare_view(self, messages: Sequence[Message]) -> list[Message]:
        """Return the minimal view with only the very last step of the work, and the last error."""
        return bare_view(messages, self.held_or_locked())

    def _why_held(self, message_id: str, rule: str) -> str:
        if rule != "pinned":
            return f"the priority rule {rule!r} always keeps it"
        recalled = self._state.held_until.get(message_id, 0) > len(self._log.applied)
        return "it was recalled not long ago" if recalled else "it is pinned"


# -- What comes back


MOST_NAMES = 8
_HASH_BITS = (1 << 40) - 1
_MOST_SEGMENTS = 1 << 24
_RUN = 4_096
MOST_SHARE = 0.02
MESSAGE_TOKENS = 8


class RecallFeedback(SessionPart):
    """Learns from what had left the view and was needed again: similar segments are kept longer."""

    def note(self, segments: Iterable[ContextSegment], message_ids: Iterable[str] = ()) -> None:
        """Record that segments were needed after they had left, and which messages that brings back."""
        state = self._state
        for segment in segments:
            state.ghosts.note(segment, state.requests)
        self.report(state.thrashing.note_back(message_ids, state.requests))

    def report(self, found: Thrash | None) -> None:
        """Emit that collecting does more harm than good, if so; the next collection reports it too."""
        if found is not None:
            numbers = msgspec.to_builtins(found).items()
            self._state.thrash = {name: number for name, number in numbers if number}
            self._events.emit("thrashing", **self._state.thrash)


class SessionRecall(SessionPart):
    """Finds what left the view, and brings it back: the same bytes into the same place."""

    def __init__(
        self,
        core: SessionCore,
        *,
        protected: ProtectedMessages,
        editor: ViewEditor,
        feedback: RecallFeedback,
    ) -> None:
        super().__init__(core)
        self._protected = protected
        self._editor = editor
        self._feedback = feedback

    def recall(self, handle: str) -> ContextSegment:
        """Bring a segment back into its place in the view, and hold it there for some collections.

        What the host took back itself, or what lost its message, is returned and stays out of the view.

        Raises:
            UnknownHandleError: there is no segment with the handle.
            PlanError: the view would be invalid with it, or it does not fit the window.
            StoreError: it could not be made durable; nothing has changed.
        """
        state, originals = self._state, self._view.originals
        segment = self._stash.find(handle)
        left = originals.get(segment.message_id or "")
        if segment.tier == "working" or left is None:
            self._heap.touch(segment.segment_id, self._options.clock())
            return segment
        # A part of the group may be back already, with a checkpoint.
        ids = [i for i in left.together or (left.message.message_id,) if i in originals]
        new = self._view.with_messages(originals[i].message for i in ids)
        self._check_room(new, ids)
        until = len(self._log.applied) + self._options.config.recall_hold_collections
        with state.rollback_on_error():
            state.held_until = {**state.held_until, **dict.fromkeys(ids, until)}
            self._editor.show_again(new, "recall")
        # What it costs and teaches is stored with the next commit.
        self._feedback.note([segment], ids)
        state.savings.fault(segment.tokens or 0, self._accounting.budget.total_tokens())
        self._events.emit("recalled", handle=handle, segment_id=segment.segment_id)
        return self._heap.get(segment.segment_id)

    def text_together(self, handle: str) -> str:
        """Return the text of a segment; if it is a group's first part, those of all that left with it.

        Raises:
            UnknownHandleError: there is no segment with the handle.
        """
        segment, originals = self._stash.find(handle), self._view.originals
        left = originals.get(segment.message_id or "")
        group = [originals[i] for i in left.together if i in originals] if left else []
        ids = [segment_id for original in group for segment_id in original.segment_ids]
        if ids[:1] != [segment.segment_id]:
            return segment.text
        return "\n".join(self._heap.get(segment_id).text for segment_id in ids)

    def note_fault(self, handle: str) -> None:
        """Learn that the model read a segment that had left the view.

        Raises:
            UnknownHandleError: there is no segment with the handle.
        """
        segment = self._stash.find(handle)
        if segment.tier == "stashed":
            self._feedback.note([segment], [segment.message_id or ""])

    def search(self, query: str, limit: int, filters: SearchFilters | None) -> list[Hit]:
        """Return the segments of this session that match best."""
        self._archive.save()
        found = self._archive.store.search(
            query, session_id=self._archive.session_id, filters=filters, limit=limit
        )
        hits = []
        for hit in found:
            segment = self._heap.peek(hit.key)
            if segment is not None:
                handle = self._stash.recall_handle(hit.key)
                whole = msgspec.structs.replace(segment, text=segment.text)
                hits.append(Hit(handle=handle, score=hit.score, text=whole.text, segment=whole))
        return hits

    def _check_room(self, new: Sequence[Message], ids: Sequence[str]) -> None:
        """Refuse what would not fit together with all else that is held: nothing could be sent any more."""
        accounting, budget = self._accounting, self._accounting.budget
        held = whole_groups(new, {*self._protected.held_or_locked(), *ids})
        size = accounting.beside_tokens() + sum(map(accounting.tokens, held))
        if size > budget.context_limit:
            raise PlanError(
                f"what must stay would have {size} tokens with it: that does not fit a window of "
                f"{budget.context_limit}",
                hint="read(handle) shows the text without changing the view",
            )


class StashedNames:
    """Which stashed segments hold which identifier, in eight bytes for each.

    A name is found by 40 bits of its hash, so what is found may, very rarely, not have it. Entries are in
    sorted runs, each longer than the next; two that are nearly as long become one.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._known: set[str] = set()
        self._runs: list[array[int]] = []
        self._fresh: list[int] = []

    def unknown(self, segment_ids: Iterable[str]) -> list[str]:
        """Return which segments were not added yet."""
        return [segment_id for segment_id in segment_ids if segment_id not in self._known]

    def add(self, segment_id: str, names: Iterable[str]) -> None:
        """Add a segment with its names."""
        number = len(self._ids)
        self._ids.append(segment_id)
        self._known.add(segment_id)
        self._fresh += [_first_of(name) | number for name in names]
        if len(self._fresh) >= _RUN:
            self._settle()

    def holders(self, name: str) -> list[str]:
        """Return the segments that were added with a name."""
        self._settle()
        first = _first_of(name)
        found: set[int] = set()
        for run in self._runs:
            start = bisect_left(run, first)
            found.update(run[start : bisect_left(run, first + _MOST_SEGMENTS, start)])
        return [self._ids[entry % _MOST_SEGMENTS] for entry in sorted(found)]

    def _settle(self) -> None:
        if not self._fresh:
            return
        run = array("Q", sorted(self._fresh))
        self._fresh = []
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = array("Q", sorted([*self._runs.pop(), *run]))
        self._runs.append(run)


def _first_of(name: str) -> int:
    """Return the smallest entry that a name can have."""
    return (hash(name) & _HASH_BITS) * _MOST_SEGMENTS


class AutoRecall(SessionPart):
    """Brings lines back by themselves: those around a name that a new message uses and only the stash has."""

    def __init__(
        self,
        core: SessionCore,
        *,
        editor: ViewEditor,
        feedback: RecallFeedback,
        price_pass_is_on: Callable[[], bool],
    ) -> None:
        super().__init__(core)
        self._editor = editor
        self._feedback = feedback
        self._price_pass_is_on = price_pass_is_on
        self._names = StashedNames()
        self.last: Message | None = None
        """The message by which something came back last."""

    def bring_back(self) -> Message | None:
        """Add the lines around names that came in since the last request and only the stash holds.

        Nothing is added beyond 2 % of the window, nor what would make a collection due.
        """
        if not self._options.config.auto_recall or not self._heap.index.stashed:
            return None
        view = self._view
        fresh = self._fresh()
        asking = self._asking(fresh) if fresh else []
        if not asking:
            return None
        names = self._only_stashed(self._unheld(asking))[:MOST_NAMES]
        lines = self._lines(names, self._room())
        if not lines:
            return None
        needed = lines.keys() & self._unheld([m for m in asking if not m.results()])
        text = "\n".join(lines.values())
        format_ = view.messages[0].format
        added = text_message("user", text, format_, f"recall_{uuid.uuid4().hex}", "gc_notice")
        change = HistoryChange(gone=[], edited=[], added=[added])
        self._editor.apply([*view.messages, added], change, "recall", created_by="auto_recall")
        self.last = added
        self._note_faults(needed)
        self._events.emit("recalled", names=names, automatic=True)
        return self.last

    def _room(self) -> int:
        budget, config = self._accounting.budget, self._options.config
        full = config.target_percent if config.continuous else config.threshold_percent
        left = budget.context_limit * full / 100 - budget.total_tokens() - MESSAGE_TOKENS
        return int(min(budget.context_limit * MOST_SHARE, left))

    def _fresh(self) -> set[str]:
        """Return the messages that came in since the last request."""
        now = self._state.requests
        known = takewhile(lambda arrival: arrival.request > now, reversed(self._view.arrivals))
        return {arrival.message_id for arrival in known}

    def _asking(self, fresh: set[str]) -> list[Message]:
        """Return the new messages whose names bring lines back; they are at the end of the view."""
        found: list[Message] = []
        for message in reversed(self._view.messages):
            if not fresh:
                break
            if message.message_id in fresh and self._may_ask(message):
                found.append(message)
            fresh.discard(message.message_id)
        return found[::-1]

    def _follow_stash(self) -> None:
        """Index what was stashed since the last time."""
        stashed, read = self._heap.index.stashed, self._heap.mentions.names_of
        for segment_id in self._names.unknown(stashed):
            self._names.add(segment_id, read(segment_id, stashed[segment_id].text))

    def _unheld(self, fresh: list[Message]) -> dict[str, None]:
        """Return the names in new messages that nothing else in the view holds."""
        found: dict[str, None] = {}
        for message in fresh:
            own = set(self._segmenter.segment_ids(message.message_id))
            for part in message.parts:
                if part.kind in ("text", "tool_result") and not is_tombstone(part.text):
                    names = (n for n in identifiers(part.text) if self._holds_alone(n, own))
                    found.update(dict.fromkeys(names))
        return found

    def _may_ask(self, message: Message) -> bool:
        """Return whether a message's names bring lines back: a user's always do.

        Outputs do where the window is small. Where what leaves is chosen by its price, names and lines
        stay in the view, and what an output names is in the output itself.
        """
        if message.role == "assistant":
            return False
        return not message.results() or not self._price_pass_is_on()

    def _holds_alone(self, name: str, own: set[str]) -> bool:
        working = self._heap.mentions
        return own.issuperset(working.holders(name)) and not working.is_common(name)

    def _only_stashed(self, unheld: Iterable[str]) -> list[str]:
        if not unheld:
            return []
        self._follow_stash()
        return [name for name in unheld if self._stashed_holders(name)]

    def _stashed_holders(self, name: str) -> list[ContextSegment]:
        """Return the stashed segments with a name, newest first; none if it is common."""
        stashed = self._heap.index.stashed
        found = [stashed[i] for i in self._names.holders(name) if i in stashed]
        found.sort(key=lambda segment: segment.position, reverse=True)
        return found if len(found) <= RARE else []

    def _note_faults(self, names: Iterable[str]) -> None:
        """Record that what a user names was needed again; what an output mentions was not."""
        needed = map(self._newest, sorted(names))
        self._feedback.note([segment for segment in needed if segment is not None])

    def _lines(self, names: list[str], budget: int) -> dict[str, str]:
        blocks: dict[str, str] = {}
        for name in names:
            segment = self._newest(name)
            if segment is None:
                continue
            head = note(f"{name} is in {describe(segment)}, moved out earlier")
            block = f"{head}\n{excerpt(segment.text, pattern=name)}"
            if self._options.config.secrets == "mask":
                block = mask_secrets(block)
            cost = self._accounting.counter.count(block)
            if cost <= budget:
                budget -= cost
                blocks[name] = block
        return blocks

    def _newest(self, name: str) -> ContextSegment | None:
        outputs = (s for s in self._stashed_holders(name) if s.part != "tool_call")
        return next((segment for segment in outputs if name in segment.text), None)
