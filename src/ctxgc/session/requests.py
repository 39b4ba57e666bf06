"""What a request costs, and what its answer teaches."""

from __future__ import annotations

from copy import copy

from ctxgc.errors import MessageError
from ctxgc.invariants.pairs import is_thinking, may_stay_open
from ctxgc.session.saving import save
from ctxgc.session.trying import trying
from ctxgc.session.workings import Workings

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
