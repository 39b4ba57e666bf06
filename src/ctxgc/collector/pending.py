"""Pending results: those that the model has not read yet, shortened when nothing else is left to leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from ctxgc.collector.calls import unread_recalls
from ctxgc.collector.excerpt import Excerpt
from ctxgc.collector.host import Host, call_that_recalls
from ctxgc.collector.run import CollectionRun
from ctxgc.core import GAP, OPENING, ContextSegment, Evidence, Heap, Message, note
from ctxgc.wire import replace_text

CUT_TO = 0.8
LEAST_TOKENS = 100
_HEAD, _TAIL, _ERRORS = 0.6, 0.3, 0.1
"""The shares of the start, the end and the errors in what stays."""

_CUT = "the middle was cut out"
_SHARE_MARGIN = 1.1  # characters and tokens do not shrink by the same share


class _Pending(msgspec.Struct, frozen=True):
    """A result at the end of the history: its place, its current size, and its whole text."""

    message_id: str
    part: int
    tokens: int
    whole: ContextSegment


def shorten_pending(run: CollectionRun) -> None:
    """Shorten results to 80%, or to what the target allows, the largest first, until it is met."""
    for pending in sorted(_pending(run), key=lambda each: -each.tokens):
        message = run.draft.get(pending.message_id)
        if run.excess <= 0 or message is None:
            return
        left = max(LEAST_TOKENS, pending.tokens - run.excess * _SHARE_MARGIN)
        shorter = _shortened(message, pending, min(pending.tokens * CUT_TO, left), run.host)
        if run.host.message_tokens(shorter) < run.draft.size(message.message_id):
            run.draft.replace(shorter, Evidence(kind="oldest", tokens=run.excess))


def pending_tokens(history: Sequence[Message], tokens: Callable[[Message], int]) -> int:
    """Return about how many tokens shortening could win of the results after the model's last answer."""
    recalled = unread_recalls(history)
    pending = [
        message
        for message in takewhile(Message.results, reversed(history))
        if not recalled.issuperset(message.results())
    ]
    return sum(max(0, tokens(m) - 2 * LEAST_TOKENS * len(m.results())) for m in pending)


def _pending(run: CollectionRun) -> list[_Pending]:
    """Return the results after the model's last answer that may be shortened."""
    heap = run.host.gc_state(run.history).heap
    pinned = frozenset(run.usage.get("pinned_message_ids", ()))
    recalled = unread_recalls(run.history)
    found = []
    for message in reversed(run.history):
        if not message.results():
            break
        ids = run.host.segment_ids(message.message_id)
        found += [
            _Pending(message.message_id, place, run.host.counter.count(part.text), whole)
            for place, (part, segment_id) in enumerate(zip(message.parts, ids, strict=False))
            if part.kind == "tool_result" and not part.server_side and part.call_id not in recalled
            and (whole := _whole(heap, segment_id)) is not None
        ]  # fmt: skip
    return [p for p in found if p.tokens > LEAST_TOKENS and p.message_id not in pinned]


def _whole(heap: Heap, segment_id: str) -> ContextSegment | None:
    """Return the segment or, if it was shortened before, the one that it was made from."""
    segment = heap.peek(segment_id)
    if segment is None or segment.derived_from is None or f"{OPENING} {_CUT}" not in segment.text:
        return segment
    return heap.peek(segment.derived_from) or segment


def _shortened(message: Message, pending: _Pending, keep_tokens: float, host: Host) -> Message:
    """Return the message with the start, the errors and the end of a result, and how to see all of it."""
    call = call_that_recalls(host, pending.whole.segment_id)
    said = f"{_CUT}, the context was full.{f' All of it: {call}' if call else ''}"
    text = pending.whole.text
    share = keep_tokens / max(1, host.counter.count(text))
    keep = max(0.0, len(text) * share - len(note(said)))
    found = Excerpt(text)
    found.keep_ends(_HEAD * keep, _TAIL * keep)
    found.keep_matches((), _ERRORS * keep)
    head = min(set(range(len(found.pieces))) - found.kept, default=0)
    shown = found.written(lambda first, _: note(said) if first == head else GAP)
    return replace_text(message, pending.part, shown, keep_media=False)
