"""Cutting the results that the model has not read yet: the last resort before giving up.

The newest results are roots of every strategy. When the provider refuses the view and all the rest has
gone already, the largest of them loses its middle. The whole text is stashed, and the cut says how
to get it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ctxgc.core.message import Message
from ctxgc.strategies.base import Constraints
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.host import Host
from ctxgc.strategies.workbench import Workbench
from ctxgc.wire import replace_text

CUT_TO = 0.8
LEAST_TOKENS = 100
_HEAD = 0.7


class _Pending(msgspec.Struct, frozen=True):
    """A result at the end of the history: its size, its message and its place in there."""

    tokens: int
    message_id: str
    part: int


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
            keep = min(pending.tokens * CUT_TO, max(LEAST_TOKENS, pending.tokens - bench.excess))
            shorter = _cut(message, pending, keep / pending.tokens, bench.host)
            if bench.host.message_tokens(shorter) < bench.draft.size(message.message_id):
                bench.draft.replace(shorter, "cut_pending")


def _pending(bench: Workbench) -> list[_Pending]:
    """The results behind the last answer of the model that may be touched."""
    pinned = frozenset(bench.usage.get("pinned_message_ids", ()))
    found = []
    for message in reversed(bench.history):
        if not message.results():
            break
        found += [
            _Pending(bench.host.counter.count(part.text), message.message_id, place)
            for place, part in enumerate(message.parts)
            if part.kind == "tool_result" and not part.server_side
        ]
    return [p for p in found if p.tokens > LEAST_TOKENS and p.message_id not in pinned]


def _cut(message: Message, pending: _Pending, share: float, host: Host) -> Message:
    text = message.parts[pending.part].text
    segment_id = host.segment_ids(message.message_id)[pending.part]
    how = ""
    if host.recall_call:
        how = f" All of it: {host.recall_call.replace('{handle}', host.handle(segment_id))}"
    note = f"\n[ctxgc: the middle was cut out, the context was full.{how}]\n"
    keep = max(0, int(len(text) * share) - len(note))
    head = int(keep * _HEAD)
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return replace_text(message, pending.part, f"{text[:head]}{note}{tail}", keep_media=False)
