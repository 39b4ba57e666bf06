"""What of a recorded window the engine would call garbage, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ctxgc.collector import Analysis, GCEngine, Segmenter
from ctxgc.core import ContextSegment, Heap
from ctxgc.errors import MessageError
from ctxgc.insight.clock import TranscriptClock
from ctxgc.tokens import TokenCounter
from ctxgc.wire import build
from ctxgc.wire.transcripts import RecordedMessage

REASONS = ("superseded", "duplicate", "unreachable", "verbose")


class GarbageItem(msgspec.Struct, frozen=True, kw_only=True):
    """One segment that could leave: what it is, and why."""

    reason: str
    how: str
    tokens: int
    name: str
    line: int


class WindowGarbage(msgspec.Struct, frozen=True, kw_only=True):
    """The garbage of one window, and how many tokens the window had."""

    tokens: int
    dead: list[GarbageItem]


def find_garbage(view: Sequence[RecordedMessage], counter: TokenCounter) -> WindowGarbage:
    """Return what could leave a window at its end."""
    clock = TranscriptClock()
    heap = Heap(counter.count)
    segmenter = Segmenter(counter, heap, clock)
    lines: dict[str, int] = {}
    for message in view:
        clock.advance(message.written_at)
        _take(segmenter, message, lines)
    engine = GCEngine()
    analysis = engine.analyze(engine.state(heap, clock()))
    tokens = sum(segment.tokens or 0 for segment in heap)
    return WindowGarbage(tokens=tokens, dead=_dead(analysis, engine, lines))


def _take(segmenter: Segmenter, recorded: RecordedMessage, lines: dict[str, int]) -> None:
    try:
        message = build(recorded.data, recorded.format, recorded.message_ids[0])
    except MessageError:
        return
    ids = segmenter.take(message)
    lines.update(dict.fromkeys(ids, recorded.lines[0]))


def _dead(analysis: Analysis, engine: GCEngine, lines: dict[str, int]) -> list[GarbageItem]:
    known = {segment.segment_id: segment for segment in analysis.order}
    found = {
        segment.segment_id: ("duplicate" if segment.superseded_how == "identical" else "superseded")
        for segment in known.values()
        if segment.superseded_by is not None
    }
    for segment in analysis.garbage:
        found.setdefault(segment.segment_id, "unreachable")
    options = engine.options
    is_cold = _coldness(analysis, options.cold_steps)
    for segment in analysis.cold(is_cold, options.verbose_tokens):
        found.setdefault(segment.segment_id, "verbose")
    return [_row(known[name], reason, lines) for name, reason in found.items() if name in known]


def _coldness(analysis: Analysis, steps: int) -> Callable[[ContextSegment], bool]:
    now = analysis.state.heap.step
    return lambda segment: (
        segment.part == "tool_result" and now - segment.last_touched_step >= steps
    )


def _row(segment: ContextSegment, reason: str, lines: dict[str, int]) -> GarbageItem:
    return GarbageItem(
        reason=reason,
        how=segment.superseded_how or "",
        tokens=segment.tokens or 0,
        name=segment.file_path or segment.command or segment.name or segment.part or segment.type,
        line=lines.get(segment.segment_id, 0),
    )
