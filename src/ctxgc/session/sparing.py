"""Sparing: collections for the price alone, before a request, while the window is far from full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ctxgc.core.message import Message
from ctxgc.core.secrets import mask_secrets
from ctxgc.economics import requests_to_pay_back
from ctxgc.errors import MessageError
from ctxgc.invariants.verbatim import first_difference
from ctxgc.session.collecting import impose
from ctxgc.session.requests import beside_tokens, is_cold, unpruned_tokens
from ctxgc.session.swapping import swap
from ctxgc.session.verdict import compare
from ctxgc.session.view import THRIFT
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCResult, GCTriggerReason
from ctxgc.thrift import Books, Edit, Request, Thrift
from ctxgc.wire import replace_arguments, replace_text, strip_bound_thinking


def spare(w: Workings) -> GCResult | None:
    """Leave out what the view shows twice, and collect what costs more to keep than to re-write.

    Raises:
        StoreError: what would leave could not be made durable; nothing has changed.
    """
    if w.thrift is None or not w.config.auto_trigger:
        return None
    try:
        return _spare(w, w.thrift)
    except BaseException:
        w.thrift.reset()
        raise


def _spare(w: Workings, thrift: Thrift) -> GCResult | None:
    request = _request(w)
    arrivals = thrift.spare_copies(request)
    w.view.note_seen(THRIFT)
    view = request.view
    if arrivals:
        view = _edited(w, view, arrivals)
        thrift.settle(view[request.same :])
    paused = w.thrashing.is_paused(w.requests)
    cut = [] if paused else thrift.cut(replace(request, view=view))
    if not arrivals and not cut:
        return None
    new = _edited(w, view, cut)
    if w.binds_thinking:
        new = strip_bound_thinking(new, first_difference(w.view.messages, new))
    result = None
    if cut:
        result = impose(
            w, new, w.plugin.name, reason=GCTriggerReason.PRE_MESSAGE, scope="minor",
            details=_details(w, new, cut) | _ghosts(thrift.held),
        )  # fmt: skip
    else:
        swap(w, new, compare(w.view.messages, new))
        w.events.emit("deduplicated", message_ids=[edit.message_id for edit in arrivals])
    thrift.settle(w.view.messages[w.view.seen_by(THRIFT) :])
    return result


def _request(w: Workings) -> Request:
    return Request(
        view=w.view.messages,
        sent=w.sent_messages,
        same=w.view.seen_by(THRIFT),
        number=w.requests + 1,
        born=lambda message_id: _born(w, message_id),
        books=Books(
            bill=w.savings.savings.bill,
            unpruned_bill=w.savings.unpruned_bill(unpruned_tokens(w), warm=not is_cold(w)),
            beside=beside_tokens(w),
            is_cold=is_cold(w),
        ),
        untouchable=w.kept_messages() | w.undone.left_alone(w.requests),
        recall=lambda message_id, part: _recall_call(w, message_id, part),
        ghost=(lambda message_id, part: _ghost(w, message_id, part))
        if w.ghosts.are_about(w.requests)
        else None,
    )


def _born(w: Workings, message_id: str) -> int:
    arrival = w.view.arrival_of(message_id)
    return w.requests + 1 if arrival is None else arrival.request


def _ghost(w: Workings, message_id: str, part: int) -> float:
    return w.ghosts.weight(w.heap.get(w.segment_ids(message_id)[part]), w.requests)


def _recall_call(w: Workings, message_id: str, part: int) -> str:
    """Return the call that recalls a part; inside a session a segment's own id is handle enough."""
    if w.recall_call is None:
        return ""
    segment_id = w.segment_ids(message_id)[part]
    original = w.heap.get(segment_id).derived_from or segment_id
    return w.recall_call.replace("{handle}", original)


def _edited(w: Workings, view: Sequence[Message], edits: Sequence[Edit]) -> list[Message]:
    """Return the view with edits; only what stands behind the first of them is looked at."""
    by_message: dict[str, list[Edit]] = {}
    for edit in edits:
        by_message.setdefault(edit.message_id, []).append(edit)
    new = list(view)
    for place in range(len(new) - 1, -1, -1):
        if not by_message:
            break
        for edit in by_message.pop(new[place].message_id, ()):
            new[place] = _with_text(w, new[place], edit)
    return new


def _with_text(w: Workings, message: Message, edit: Edit) -> Message:
    text = mask_secrets(edit.text) if w.config.secrets == "mask" else edit.text
    try:
        if edit.is_call:
            return replace_arguments(message, edit.part, text)
        return replace_text(message, edit.part, text, keep_media=False)
    except MessageError:
        return message


def _ghosts(held: Mapping[str, float]) -> dict[str, object]:
    """Say what stayed only because its like was recalled before."""
    return {"ghosts": {name: round(weight, 2) for name, weight in held.items()}} if held else {}


def _details(w: Workings, new: Sequence[Message], cut: Sequence[Edit]) -> dict[str, object]:
    """Say what the collection wins, what it re-writes, and when it has paid for itself."""
    first = first_difference(w.view.messages, new)
    before = sum(map(w.books.tokens, w.view.messages[first:]))
    after = sum(map(w.books.tokens, new[first:]))
    won = max(0, before - after)
    return {
        "tokens_won": won,
        "tokens_rewritten": after,
        "requests_to_pay_back": requests_to_pay_back(won, after, w.prices),
        "why": {edit.message_id: edit.why for edit in cut},
    }
