"""Syncing: a whole history comes again, and only what is new of it is taken in."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.core.message import Format, Message
from ctxgc.session.applying import apply
from ctxgc.session.collecting import Outcome
from ctxgc.session.verdict import compare
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCResult, GCTriggerReason
from ctxgc.wire import parse, render


def sync(w: Workings, messages: Sequence[Message]) -> list[str]:
    """Take in what is new; where the history differs from what came in, go on from there."""
    shared = w.view.shared_with(messages)
    if shared < len(w.view.taken):
        _rewind(w, shared)
    return w.take_all(messages[shared:])


def _rewind(w: Workings, count: int) -> None:
    """Stash all but the first `count` messages that came in."""
    gone = set(w.view.taken[count:])
    rest = [m for m in w.view.messages if m.message_id not in gone]
    before = w.books.budget.total_tokens()
    result = GCResult(True, len(gone), before, before, "sync", GCTriggerReason.MANUAL)
    change = compare(w.view.messages, rest)
    if change:
        apply(w, Outcome(history=rest, change=change, result=result))
        w.applied.pop()
    w.view.forget_taken(count)


def reformat(w: Workings, format_: Format) -> None:
    """Read the plain messages of a session, whose format was only guessed, in another format."""
    twins = [parse(d, format_, m.message_id) for d, m in
             zip(render(w.view.messages), w.view.messages, strict=True)]  # fmt: skip
    for old, new in zip(w.view.messages, twins, strict=True):
        w.books.leave(old)
        w.books.enter(new)
    w.view.messages = twins
