"""Digests in the view of a session: they tell of what left in need, and no more of what is deleted."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from ctxgc.core.message import Message
from ctxgc.core.tombstone import OPENING
from ctxgc.session.swapping import show
from ctxgc.session.workings import Workings
from ctxgc.strategies.digest import Entry, handle_of, handles_in, without, write_digest
from ctxgc.wire import text_message


def tell_no_more(w: Workings, handles: set[str]) -> None:
    """Write the digests in the view anew, without the handles and lines of some groups.

    Raises:
        StoreError: that could not be made durable; nothing has changed.
    """
    told = [message for message in w.view.messages if _tells(message, handles)]
    for message in told:
        text = without(message.text(), handles)
        name = f"gc_notice_{uuid.uuid4().hex}"
        new = [text_message("user", text, message.format, name)] if text else []
        view = w.view.messages
        place = view.index(message)
        show(w, [*view[:place], *new, *view[place + 1 :]], created_by="delete")


def leaving(w: Workings, new: Sequence[Message]) -> list[str]:
    """Return the handles of all groups that would be out of the view if this were the new one.

    Those that a digest of the new view tells of are not among them.
    """
    stay = {message.message_id for message in new}
    gone = [message for message in w.view.messages if message.message_id not in stay]
    found = [handle for m in gone if m.origin == "gc_notice" for handle in handles_in(m.text())]
    for group in w.view.groups_of(w.view.messages):
        first = w.view.messages[group[0]]
        if first.message_id not in stay and first.origin != "gc_notice":
            handle = handle_of(map(w.heap.get, w.segment_ids(first.message_id)))
            found += [] if handle is None else [handle]
    told = _told(new)
    return [handle for handle in dict.fromkeys(found) if handle not in told]


def notice_of(w: Workings, handles: Sequence[str]) -> Message | None:
    """Return a notice that tells of groups that left; None when there is nothing to tell, or no way back.

    A recovery has several steps: what a later one brought back, or a digest tells of, is left out.
    """
    told = w.recall_call is not None and w.config.notify_on_gc and w.view.messages
    out = _still_out(w, handles) if told and handles else []
    if not out:
        return None
    said = f"{OPENING} {len(out)} older steps were moved out in need]"
    text = "\n".join([said, write_digest(map(Entry, out))])
    name = f"gc_notice_{uuid.uuid4().hex}"
    return text_message("user", text, w.view.messages[0].format, name)


def show_notice(w: Workings, notice: Message) -> None:
    """Put a notice in front of the last step of the view."""
    view = w.view.messages
    place = max(w.view.groups_of(view), key=max)[0]
    show(w, [*view[:place], notice, *view[place:]], created_by="guard")


def _still_out(w: Workings, handles: Sequence[str]) -> list[str]:
    """Return those handles, each once, whose group is neither in the view nor told of there nor deleted."""
    here = {message.message_id for message in w.view.messages}
    told = _told(w.view.messages)
    found = {handle: w.heap.peek(handle) for handle in handles if handle not in told}
    return [h for h, segment in found.items() if segment and segment.message_id not in here]


def _told(messages: Sequence[Message]) -> set[str]:
    return {h for m in messages if m.origin == "gc_notice" for h in handles_in(m.text())}


def told_before(w: Workings, handles: set[str]) -> frozenset[str]:
    """Return the digests of earlier collections that an undo would show, and that name a handle."""
    return frozenset(
        message.message_id
        for record in w.applied
        for message in record.before
        if _tells(message, handles)
    )


def _tells(message: Message, handles: set[str]) -> bool:
    return message.origin == "gc_notice" and not handles.isdisjoint(handles_in(message.text()))
