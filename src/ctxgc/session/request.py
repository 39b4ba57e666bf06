"""Sparing: collections for the price alone, before a request, while the window is far from full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from msgspec.structs import replace

from ctxgc.core import Message, mask_secrets, recall_call
from ctxgc.economics import requests_to_pay_back
from ctxgc.errors import MessageError
from ctxgc.invariants import first_difference, is_thinking, may_stay_open
from ctxgc.session.apply import swap
from ctxgc.session.collection import impose
from ctxgc.session.plugin_check import compare
from ctxgc.session.rollback import trying
from ctxgc.session.state import Workings, save
from ctxgc.session.view import THRIFT
from ctxgc.strategies import Billing, Edit, GCResult, GCTriggerReason, PriceRequest, Thrift
from ctxgc.wire import replace_arguments, replace_text, strip_bound_thinking

# -- What a request costs, and what its answer teaches


_BOOKED = ("sent_before", "sent_messages", "sent_at", "requests")


def check_complete(w: Workings) -> None:
    """Make sure that nothing in the view waits for what belongs to it.

    Raises:
        MessageError: a call has no result yet, or reasoning stands alone at the end.
    """
    hint = "view() shows the messages as they are"
    for call, message_id in w.view.waiting.items():
        caller = w.view.get(message_id)
        if caller is not None and may_stay_open(caller):
            continue
        raise MessageError(
            f"the tool call '{call}' waits for its result",
            hint=f"append the result first; {hint}",
            call_id=call,
            message_id=message_id,
        )
    last = w.view.messages[-1] if w.view.messages else None
    if last is not None and last.format == "responses" and is_thinking(last):
        raise MessageError(
            "the reasoning at the end waits for what follows it",
            hint=f"append the rest of the answer first; {hint}",
            message_id=last.message_id,
        )


def record_request(w: Workings) -> None:
    """Book the view that is sent now: what is new in it, and what it would be without collecting.

    Raises:
        StoreError: it could not be made durable; then it is not sent, and nothing was booked.
    """
    booked = {name: getattr(w, name) for name in _BOOKED}
    with trying(w, savings=copy(w.savings), **booked):
        _book(w)
        save(w)


def _book(w: Workings) -> None:
    sent = w.books.budget.total_tokens()
    warm = not is_cold(w)
    cached = min(sent, w.sent_before) if warm else 0
    w.savings.record(sent, cached, unpruned_tokens(w), warm=warm)
    w.sent_before = sent
    w.sent_messages = len(w.view.messages)
    w.sent_at = w.clock()
    w.requests += 1


def is_cold(w: Workings) -> bool:
    """Tell whether the provider has forgotten the last request by now."""
    life = w.prices.ttl_seconds
    if life is None or w.sent_at is None:
        return False
    return (w.clock() - w.sent_at).total_seconds() > life


def unpruned_tokens(w: Workings) -> int:
    """Return the size of the next request had nothing ever been collected."""
    return w.ingested_tokens + beside_tokens(w)


def beside_tokens(w: Workings) -> int:
    """Return the tokens that are sent beside the messages: system prompt, tools, enrichment."""
    return w.books.budget.total_tokens() - w.books.message_total


def calibrate(w: Workings, input_tokens: int) -> bool:
    """Teach the counter what the provider counted for the view; recount when that changed it."""
    if not w.counter.calibrate(w.books.budget.total_tokens(), input_tokens):
        return False
    w.books.recount(w.view.messages)
    if w.thrift is not None:
        w.thrift.recount()
    return True


# -- Sparing: collections for the price alone, before a request, while the window is far from full


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


def _request(w: Workings) -> PriceRequest:
    return PriceRequest(
        view=w.view.messages,
        sent=w.sent_messages,
        same=w.view.seen_by(THRIFT),
        number=w.requests + 1,
        born=lambda message_id: _born(w, message_id),
        books=Billing(
            bill=w.savings.savings.bill,
            unpruned_bill=w.savings.unpruned_bill(unpruned_tokens(w), warm=not is_cold(w)),
            beside=beside_tokens(w),
            is_cold=is_cold(w),
        ),
        untouchable=w.kept_messages() | w.undone.left_alone(w.requests),
        recall=lambda message_id, part: _recall_call(w, message_id, part),
        ghost=(lambda message_id, part: _ghost(w, message_id, part))
        if w.ghosts.any_left(w.requests)
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
    return recall_call(original, w.recall_call)


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
