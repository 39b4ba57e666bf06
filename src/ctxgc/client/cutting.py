"""Cutting the results that the model has not read yet: the last resort before giving up.

The newest results are roots of every strategy. When the provider refuses the view and all the rest has
gone already, the largest of them loses its middle. The whole text is stashed, and the cut says how
to get it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ctxgc.core.heap import Heap
from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.host import Host
from ctxgc.strategies.workbench import Workbench
from ctxgc.wire import replace_text

CUT_TO = 0.8
LEAST_TOKENS = 100
_HEAD = 0.7
_NOTE = "[ctxgc: the middle was cut out"
_MARGIN = 1.1  # letters and tokens do not shrink by the same share


class _Pending(msgspec.Struct, frozen=True):
    """A result at the end of the history: where it stands, its size now, and its whole text."""

    message_id: str
    part: int
    tokens: int
    whole: ContextSegment


class CutPendingStrategy(BuiltinStrategy):
    """Cuts trailing tool results to 80% or, where that is not enough, to what the target leaves."""

    name: ClassVar[str] = "gc_cut_pending"
    constraints: ClassVar[Constraints] = Constraints(lossy=False)

    def shrink(self, bench: Workbench) -> None:
        """Cut the largest results first, until the target is met."""
        for pending in sorted(_pending(bench), key=lambda each: -each.tokens):
            message = bench.draft.get(pending.message_id)
            if bench.excess <= 0 or message is None:
                return
            left = max(LEAST_TOKENS, pending.tokens - bench.excess * _MARGIN)
            keep = min(pending.tokens * CUT_TO, left)
            shorter = _cut(message, pending, keep, bench.host)
            if bench.host.message_tokens(shorter) < bench.draft.size(message.message_id):
                bench.draft.replace(shorter, "cut_pending")


def _pending(bench: Workbench) -> list[_Pending]:
    """The results behind the last answer of the model that may be touched."""
    heap = bench.host.gc_state(bench.history).heap
    pinned = frozenset(bench.usage.get("pinned_message_ids", ()))
    found = []
    for message in reversed(bench.history):
        if not message.results():
            break
        ids = bench.host.segment_ids(message.message_id)
        found += [
            _Pending(message.message_id, place, bench.host.counter.count(part.text), whole)
            for place, (part, segment_id) in enumerate(zip(message.parts, ids, strict=False))
            if part.kind == "tool_result" and not part.server_side
            and (whole := _whole(heap, segment_id)) is not None
        ]  # fmt: skip
    return [p for p in found if p.tokens > LEAST_TOKENS and p.message_id not in pinned]


def _whole(heap: Heap, segment_id: str) -> ContextSegment | None:
    """The segment itself or, of one that was cut before, the one that it was cut from."""
    segment = heap.peek(segment_id)
    if segment is None or segment.derived_from is None or _NOTE not in segment.text:
        return segment
    return heap.peek(segment.derived_from) or segment


def _cut(message: Message, pending: _Pending, keep_tokens: float, host: Host) -> Message:
    """Return the message with the start and the end of a result, and how to see all of it."""
    how = ""
    if host.recall_call:
        handle = host.handle(pending.whole.segment_id)
        how = f" All of it: {host.recall_call.replace('{handle}', handle)}"
    note = f"\n{_NOTE}, the context was full.{how}]\n"
    text = pending.whole.text
    share = keep_tokens / max(1, host.counter.count(text))
    keep = max(0, int(len(text) * share) - len(note))
    head = int(keep * _HEAD)
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return replace_text(message, pending.part, f"{text[:head]}{note}{tail}", keep_media=False)
