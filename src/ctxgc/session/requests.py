"""What a request costs, and what its answer teaches."""

from __future__ import annotations

from ctxgc.session.saving import save
from ctxgc.session.workings import Workings


def record_request(w: Workings) -> None:
    """Book the view that is sent now: what is new in it, and what it would be without collecting."""
    save(w)
    sent = w.books.budget.total_tokens()
    beside = sent - w.books.message_total
    w.savings.record(sent, min(sent, w.sent_before), w.ingested_tokens + beside)
    w.sent_before = sent


def calibrate(w: Workings, input_tokens: int) -> bool:
    """Teach the counter what the provider counted for the view; recount when that changed it."""
    if not w.counter.calibrate(w.books.budget.total_tokens(), input_tokens):
        return False
    w.books.recount(w.view.messages)
    return True
