"""Digests in the view of a session: when what they tell of is deleted, they tell of it no more."""

from __future__ import annotations

import uuid

from ctxgc.core.message import Message
from ctxgc.session.swapping import swap
from ctxgc.session.verdict import Change
from ctxgc.session.workings import Workings
from ctxgc.strategies.digest import handles_in, without
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
        shown = [*view[:place], *new, *view[place + 1 :]]
        swap(w, shown, Change(gone=[message], edited=[], added=new), created_by="delete")


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
