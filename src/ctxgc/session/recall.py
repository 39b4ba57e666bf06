"""What comes back: recall and undo. Both put the same bytes back into the same places."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import takewhile
from typing import Any

from ctxgc.budget import GCPolicy
from ctxgc.core import (
    ContextSegment,
    Mentions,
    Message,
    describe,
    identifiers,
    is_tombstone,
    mask_secrets,
    note,
)
from ctxgc.errors import PlanError
from ctxgc.invariants import check
from ctxgc.session.apply import swap
from ctxgc.session.collection import note_faults
from ctxgc.session.handles import Hit, excerpt
from ctxgc.session.plugin_check import HistoryChange, compare
from ctxgc.session.record import Applied
from ctxgc.session.rollback import trying
from ctxgc.session.setup import checked_filters
from ctxgc.session.state import Workings, save
from ctxgc.session.view import View, whole_groups
from ctxgc.stores import Put, SearchFilters
from ctxgc.wire import text_message

# -- What stays and what is found: pins, policies, search


_IDS = "history[n].message_id is the id of a message, append() returns the ids of segments"


def set_pinned(w: Workings, name: str, *, pinned: bool) -> None:
    """Pin or unpin a message with all its parts, or a single segment.

    Raises:
        StoreError: it could not be made durable; nothing has changed.
    """
    is_message = w.view.get(name) is not None
    messages = {name} if is_message else set()
    ids = w.segment_ids(name) if is_message else (w.stash.find(name, _IDS).segment_id,)
    kept = w.pinned_messages | messages if pinned else w.pinned_messages - messages
    with pinning(w, kept, dict.fromkeys(ids, pinned)):
        save(w)
    w.events.emit("pinned" if pinned else "unpinned", id=name)


@contextmanager
def pinning(w: Workings, messages: set[str], segments: Mapping[str, bool]) -> Iterator[None]:
    """Pin just these messages, and pin or unpin segments; what is made durable inside says so already.

    When that fails, all is pinned as before.
    """
    changed = {i: pinned for i, pinned in segments.items() if w.heap.get(i).pinned != pinned}
    _set_pins(w, changed)
    try:
        with trying(w, pinned_messages=messages):
            yield
    except BaseException:
        _set_pins(w, {segment_id: not pinned for segment_id, pinned in changed.items()})
        raise


def _set_pins(w: Workings, pins: Mapping[str, bool]) -> None:
    for segment_id, pinned in pins.items():
        (w.heap.pin if pinned else w.heap.unpin)(segment_id)
    w.unsaved.update(dict.fromkeys(pins))


def set_policy(w: Workings, name: str, policy: GCPolicy) -> None:
    """Give a message, or the message of a segment, another policy.

    Raises:
        StoreError: it could not be made durable; nothing has changed.
    """
    is_message = w.view.get(name) is not None
    message_id = (name if is_message else w.stash.find(name, _IDS).message_id) or name
    chosen = GCPolicy(policy)
    with trying(w.books, policies={**w.books.policies, message_id: chosen}):
        save(w)
    w.books.set_policy(message_id, chosen)


def search(
    w: Workings, query: str, limit: int, filters: SearchFilters | Mapping[str, Any] | None
) -> list[Hit]:
    """Return the segments of this session that match best."""
    asked = checked_filters(filters)
    save(w)
    found = w.archive.store.search(
        query, session_id=w.archive.session_id, filters=asked, limit=limit
    )
    hits = []
    for hit in found:
        segment = w.heap.peek(hit.key)
        if segment is not None:
            hits.append(
                Hit(handle=w.handle(hit.key), score=hit.score, text=segment.text, segment=segment)
            )
    return hits


# -- Automatic recall: what a new message names and only the stash holds comes back by itself


MOST_NAMES = 8
MOST_SHARE = 0.02
MESSAGE_TOKENS = 8


class Mentioned:
    """Knows which names only the stash holds, and brings their lines back when they are used."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings
        self._names = Mentions()
        self._indexed: dict[str, ContextSegment] = {}
        self.last: Message | None = None

    def bring_back(self) -> Message | None:
        """Add the lines around names that came in since the last request and only the stash holds.

        Nothing is added beyond 2 % of the window, nor what would make a collection due.
        """
        w = self._w
        fresh = self._fresh()
        asking = self._asking(fresh) if w.config.auto_recall and fresh else []
        if not asking:
            return None
        names = self._only_stashed(self._unheld(asking))[:MOST_NAMES]
        lines = self._lines(names, self._room())
        if not lines:
            return None
        needed = lines.keys() & self._unheld([m for m in asking if not m.results()])
        text = "\n".join(lines.values())
        format_ = w.view.messages[0].format
        self.last = text_message("user", text, format_, f"recall_{uuid.uuid4().hex}", "gc_notice")
        change = HistoryChange(gone=[], edited=[], added=[self.last])
        swap(w, [*w.view.messages, self.last], change, created_by="auto_recall")
        self._note_faults(needed)
        w.events.emit("recalled", names=names, automatic=True)
        return self.last

    def _room(self) -> int:
        budget, config = self._w.books.budget, self._w.config
        full = config.target_percent if config.continuous else config.threshold_percent
        left = budget.context_limit * full / 100 - budget.total_tokens() - MESSAGE_TOKENS
        return int(min(budget.context_limit * MOST_SHARE, left))

    def _fresh(self) -> set[str]:
        """Return the messages that came in since the last request."""
        w = self._w
        known = takewhile(lambda arrival: arrival.request > w.requests, reversed(w.view.arrivals))
        return {arrival.message_id for arrival in known}

    def _asking(self, fresh: set[str]) -> list[Message]:
        """Return the new messages whose names bring lines back; they stand at the end of the view."""
        found: list[Message] = []
        for message in reversed(self._w.view.messages):
            if not fresh:
                break
            if message.message_id in fresh and self._may_ask(message):
                found.append(message)
            fresh.discard(message.message_id)
        return found[::-1]

    def _follow_stash(self) -> None:
        """Index what was stashed since the last time, and forget what came back or was deleted."""
        stashed, read = self._w.heap.index.stashed, self._w.heap.mentions.names_of
        for segment_id in self._indexed.keys() - stashed.keys():
            self._names.discard(segment_id, self._indexed.pop(segment_id).text)
        for segment_id in stashed.keys() - self._indexed.keys():
            segment = self._indexed[segment_id] = stashed[segment_id]
            self._names.add(segment_id, segment.text, read(segment_id, segment.text))

    def _unheld(self, fresh: list[Message]) -> dict[str, None]:
        """Return the names in new messages that nobody else in the view holds."""
        found: dict[str, None] = {}
        for message in fresh:
            own = set(self._w.segment_ids(message.message_id))
            for part in message.parts:
                if part.kind in ("text", "tool_result") and not is_tombstone(part.text):
                    names = (n for n in identifiers(part.text) if self._holds_alone(n, own))
                    found.update(dict.fromkeys(names))
        return found

    def _may_ask(self, message: Message) -> bool:
        """Tell whether a message's names bring lines back: a user's always do.

        Outputs do where the window is tight. Where what leaves is chosen by its price, names and lines
        stay behind, and what an output names stands in the output itself.
        """
        if message.role == "assistant":
            return False
        return self._w.thrift is None or not message.results()

    def _holds_alone(self, name: str, own: set[str]) -> bool:
        working = self._w.heap.mentions
        return own.issuperset(working.holders(name)) and not working.is_common(name)

    def _only_stashed(self, unheld: Iterable[str]) -> list[str]:
        if not unheld:
            return []
        self._follow_stash()
        return [name for name in unheld if self._names.holders(name)]

    def _note_faults(self, names: Iterable[str]) -> None:
        """What a user names was needed again; what an output names by the way is no sign of that."""
        needed = map(self._newest, sorted(names))
        note_faults(self._w, [segment for segment in needed if segment is not None])

    def _lines(self, names: list[str], budget: int) -> dict[str, str]:
        blocks: dict[str, str] = {}
        for name in names:
            segment = self._newest(name)
            if segment is None:
                continue
            head = note(f"{name} stands in {describe(segment)}, moved out earlier")
            block = f"{head}\n{excerpt(segment.text, pattern=name)}"
            if self._w.config.secrets == "mask":
                block = mask_secrets(block)
            cost = self._w.counter.count(block)
            if cost <= budget:
                budget -= cost
                blocks[name] = block
        return blocks

    def _newest(self, name: str) -> ContextSegment | None:
        known = [self._indexed[i] for i in self._names.holders(name) if i in self._indexed]
        outputs = [segment for segment in known if segment.part != "tool_call"]
        return max(outputs, key=lambda segment: segment.position, default=None)


# -- What comes back: recall and undo. Both put the same bytes back into the same places


def recall(w: Workings, handle: str) -> ContextSegment:
    """Bring a segment back into its place in the view, and hold it there for some collections.

    What the host took back itself, or what lost its message, is returned and stays out of the view.

    Raises:
        UnknownHandleError: nothing answers to the handle.
        PlanError: the view would be invalid with it, or it does not fit the window.
        StoreError: it could not be made durable; nothing has changed.
    """
    segment = w.stash.find(handle)
    left = w.view.originals.get(segment.message_id or "")
    if segment.tier == "working" or left is None:
        w.heap.touch(segment.segment_id, w.clock())
        return segment
    # A part of the group may be back already, with a checkpoint.
    ids = [i for i in left.together or (left.message.message_id,) if i in w.view.originals]
    new = w.view.with_messages(w.view.originals[i].message for i in ids)
    _check_room(w, new, ids)
    until = w.collections + w.config.recall_hold_collections
    with trying(w, held_until={**w.held_until, **dict.fromkeys(ids, until)}):
        _show(w, new)
    # What it costs and teaches is stored with the next commit.
    note_faults(w, [segment], ids)
    w.savings.fault(segment.tokens or 0, w.books.budget.total_tokens())
    w.events.emit("recalled", handle=handle, segment_id=segment.segment_id)
    return w.heap.get(segment.segment_id)


def _check_room(w: Workings, new: Sequence[Message], ids: Sequence[str]) -> None:
    """What comes back is held: if it did not fit beside all else that is, nothing could be sent any more."""
    budget = w.books.budget
    beside = budget.total_tokens() - sum(map(w.books.tokens, w.view.messages))
    held = whole_groups(new, {*w.kept_messages(), *ids})
    size = beside + sum(map(w.books.tokens, held))
    if size > budget.context_limit:
        raise PlanError(
            f"what must stay would have {size} tokens with it: that does not fit a window of "
            f"{budget.context_limit}",
            hint="read(handle) shows the text without changing the view",
        )


def undo(w: Workings) -> None:
    """Make the view what it was before the last collection, with what came in since.

    For a while nothing of it is collected again for the price, nor is room made before the hard limit.

    Raises:
        PlanError: there is no collection to undo, or the view would be invalid without it.
        StoreError: it could not be made durable; nothing has changed.
    """
    if not w.applied:
        raise PlanError("there is no collection to undo", hint="look at gc_history")
    record = w.applied[-1]
    key = f"{record.number:06d}"
    doc = w.archive.store.get(w.archive.session_id, "collections", key) or {}
    kept = {name: value for name, value in doc.items() if name == "result"}
    back = w.view.with_messages(_to_bring_back(w, record))
    new = [m for m in back if m.message_id not in record.added]
    with trying(w, undone=copy(w.undone)):
        w.undone.note((m.message_id for m in record.before), w.requests)
        _show(w, new, more=[Put("collections", key, kept)])
    w.applied.pop()
    w.collections -= 1
    w.events.emit("undone", number=record.number)


def _to_bring_back(w: Workings, record: Applied) -> list[Message]:
    """The messages that the collection moved and that nobody moved back since."""
    here = {m.message_id for m in w.view.messages}
    as_it_came = here - w.view.originals.keys()
    return [
        m
        for m in record.before
        if m.message_id not in as_it_came
        and (m.message_id in w.view.originals or m.origin == "gc_notice")
    ]


def _show(w: Workings, new: list[Message], *, more: Sequence[Put] = ()) -> None:
    """Show a history that was put together from earlier ones; `more` writes belong to the change."""
    if w.binds_thinking:
        new = w.bound.strip(w.view.messages, new)
    broken = [each.text for each in check(new, complete=False)] or _open_calls(w, new)
    if broken:
        raise PlanError(
            f"the view would be invalid: {broken[0]}",
            hint="read(handle) shows the text without changing the view",
        )
    swap(w, new, compare(w.view.messages, new), more=more)


def _open_calls(w: Workings, new: Sequence[Message]) -> list[str]:
    """What comes back brings no open call, and stands behind none."""
    here = {message.message_id for message in w.view.messages}
    back = [w.view.place_of(m.message_id) for m in new if m.message_id not in here]
    trial = View()
    trial.show(new)
    return [
        f"the call '{call}' waits for its result"
        for call, message_id in trial.waiting.items()
        if call not in w.view.waiting or (back and max(back) > w.view.place_of(message_id))
    ]
