"""Sparing: collections for the price alone, before a request, while the window is far from full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCResult, GCTriggerReason
from ctxgc.thrift import Books, Edit, Request, Thrift
from ctxgc.wire import replace_text, strip_bound_thinking


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
    view = _edited(w, request.view, arrivals)
    thrift.settle(view)
    cut = thrift.cut(replace(request, view=view))
    new = _edited(w, view, cut)
    if w.binds_thinking:
        new = strip_bound_thinking(new, first_difference(w.view.messages, new))
    result = None
    if cut:
        result = impose(
            w, new, w.plugin.name, reason=GCTriggerReason.PRE_MESSAGE, details=_details(w, new, cut)
        )
    elif arrivals:
        swap(w, new, compare(w.view.messages, new))
        w.events.emit("deduplicated", message_ids=[edit.message_id for edit in arrivals])
    thrift.settle(w.view.messages)
    return result


def _request(w: Workings) -> Request:
    return Request(
        view=w.view.messages,
        sent=_shared(w.sent_view, w.view.messages),
        number=w.savings.savings.requests + 1,
        books=Books(
            bill=w.savings.savings.bill,
            unpruned_bill=w.savings.unpruned_bill(unpruned_tokens(w), warm=not is_cold(w)),
            beside=beside_tokens(w),
            is_cold=is_cold(w),
        ),
        untouchable=w.kept_messages(),
        recall=lambda message_id, part: _recall_call(w, message_id, part),
    )


def _recall_call(w: Workings, message_id: str, part: int) -> str:
    """Return the call that recalls a part; inside a session a segment's own id is handle enough."""
    if w.recall_call is None:
        return ""
    segment_id = w.segment_ids(message_id)[part]
    original = w.heap.get(segment_id).derived_from or segment_id
    return w.recall_call.replace("{handle}", original)


def _edited(w: Workings, view: Sequence[Message], edits: Iterable[Edit]) -> list[Message]:
    changed: dict[str, Message] = {}
    known = {edit.message_id for edit in edits}
    originals = {m.message_id: m for m in view if m.message_id in known}
    for edit in edits:
        before = changed.get(edit.message_id, originals[edit.message_id])
        text = mask_secrets(edit.text) if w.config.secrets == "mask" else edit.text
        try:
            changed[edit.message_id] = replace_text(before, edit.part, text, keep_media=False)
        except MessageError:
            continue
    return [changed.get(message.message_id, message) for message in view]


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


def _shared(before: Sequence[Message], now: Sequence[Message]) -> int:
    pairs = zip(before, now, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a is not b), min(len(before), len(now)))
