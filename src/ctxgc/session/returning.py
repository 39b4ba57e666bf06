"""What comes back: recall and undo. Both put the same bytes back into the same places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import PlanError
from ctxgc.invariants import check
from ctxgc.session.essentials import whole_groups
from ctxgc.session.faults import note_faults
from ctxgc.session.record import Applied
from ctxgc.session.swapping import swap
from ctxgc.session.trying import trying
from ctxgc.session.verdict import compare
from ctxgc.session.view import View
from ctxgc.session.workings import Workings
from ctxgc.stores import Put


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
