"""What of a recorded window the engine would call garbage, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ctxgc.collector import Analysis, GCEngine, Segmenter
from ctxgc.core import ContextSegment, Heap
from ctxgc.errors import MessageError
from ctxgc.insight.clock import TranscriptClock
from ctxgc.insight.fill import WindowCount
from ctxgc.tokens import TokenCounter
from ctxgc.wire import build
from ctxgc.wire.transcripts import RecordedMessage

REASONS = ("superseded", "copy", "unreachable", "verbose")
_MOST_DEAD = 20


class GarbageItem(msgspec.Struct, frozen=True, kw_only=True):
    """One segment that could leave: what it is, and why."""

    reason: str
    how: str
    tokens: int
    name: str
    line: int


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """The garbage with one reason."""

    reason: str
    tokens: int
    count: int


class Garbage(msgspec.Struct, frozen=True, kw_only=True):
    """What is garbage in the window as it is now; `percent` is its share of `of_tokens`, the whole window."""

    of_tokens: int
    tokens: int
    percent: float
    reasons: list[Reason]
    largest: list[GarbageItem]


def find_garbage(
    view: Sequence[RecordedMessage], window: WindowCount, counter: TokenCounter
) -> Garbage:
    """Return the garbage in a window at its end, in the tokens of its provider.

    Args:
        view: the messages of the window.
        window: how large the window is.
        counter: counts the tokens of each segment.
    """
    dead = [
        msgspec.structs.replace(each, tokens=window.scaled(each.tokens))
        for each in _dead_in(view, counter)
    ]
    tokens = sum(each.tokens for each in dead)
    return Garbage(
        of_tokens=window.tokens,
        tokens=tokens,
        percent=round(100.0 * tokens / window.tokens, 1) if window.tokens else 0.0,
        reasons=[_reason(name, dead) for name in REASONS],
        largest=sorted(dead, key=lambda each: (-each.tokens, each.line))[:_MOST_DEAD],
    )


def _reason(name: str, dead: list[GarbageItem]) -> Reason:
    mine = [each.tokens for each in dead if each.reason == name]
    return Reason(reason=name, tokens=sum(mine), count=len(mine))


def _dead_in(view: Sequence[RecordedMessage], counter: TokenCounter) -> list[GarbageItem]:
    clock = TranscriptClock()
    heap = Heap(counter.count)
    segmenter = Segmenter(counter, heap, clock)
    lines: dict[str, int] = {}
    for message in view:
        clock.advance(message.written_at)
        _take(segmenter, message, lines)
    engine = GCEngine()
    analysis = engine.analyze(engine.state(heap, clock()))
    return _dead(analysis, engine, lines)


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
        segment.segment_id: ("copy" if segment.superseded_how == "identical" else "superseded")
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
