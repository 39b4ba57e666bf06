"""What of a recorded window is garbage, and why: by the engine, by its agent's program, by its tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.collector import Analysis, GCEngine, Segmenter
from ctxgc.core import ContextSegment, Heap, identifiers, looks_like_path
from ctxgc.errors import MessageError
from ctxgc.insight.clock import TranscriptClock
from ctxgc.insight.fill import WindowCount
from ctxgc.insight.segment_reason import SegmentDetail, describe_segment
from ctxgc.tokens import TokenCounter
from ctxgc.wire import build, dump
from ctxgc.wire.transcripts import RecordedMessage, harness_class, reminders_in

INJECTED_AGAIN, NEVER_CALLED = "injected again", "never called"
REASONS = ("superseded", "copy", "unreachable", "verbose", INJECTED_AGAIN, NEVER_CALLED)
_FILES = "re-attached files"
_MOST_DEAD = 20
_HEAD = 300


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
    view: Sequence[RecordedMessage],
    window: WindowCount,
    counter: TokenCounter,
    tools: str = "",
    called: Container[str] = (),
) -> Garbage:
    """Return the garbage in a window at its end, in the tokens of its provider.

    Args:
        view: the messages of the window.
        window: how large the window is.
        counter: counts the tokens of each segment.
        tools: the schemas of the tools that are sent along, as JSON; empty if the file does not have them.
        called: the names of the tools that the session called.
    """
    dead = [
        msgspec.structs.replace(each, tokens=window.scaled(each.tokens))
        for each in (*_dead_in(view, counter), *_never_called(tools, called, counter))
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


def _never_called(tools: str, called: Container[str], counter: TokenCounter) -> list[GarbageItem]:
    """Return the schemas of the tools that the session never called."""
    try:
        schemas = json.loads(tools or "[]")
    except ValueError:
        return []
    named = [(_tool_name(each), each) for each in schemas if isinstance(each, dict)]
    return [
        GarbageItem(
            reason=NEVER_CALLED, how="", tokens=counter.count(dump(schema)), name=name, line=0
        )
        for name, schema in named
        if name and name not in called
    ]


def _tool_name(schema: dict[str, Any]) -> str:
    function = schema.get("function")
    name = (function if isinstance(function, dict) else schema).get("name")
    return name if isinstance(name, str) else ""


def _dead_in(view: Sequence[RecordedMessage], counter: TokenCounter) -> list[GarbageItem]:
    window = WindowHeap(counter)
    lines: dict[str, int] = {}
    asides: set[str] = set()
    for message in view:
        ids = window.take(message)
        lines.update(dict.fromkeys(ids, message.lines[0]))
        asides.update(ids if message.is_aside else ())
    dead = window.dead()
    alive = [window.segment(name) for name in lines if name not in dead]
    return [
        *(_row(window.segment(name), reason, lines) for name, reason in dead.items()),
        *_injected_again(alive, asides, lines, counter),
    ]


class WindowHeap:
    """The messages of a recorded window as the engine sees them, taken in order.

    Args:
        counter: counts the tokens of each segment.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._clock = TranscriptClock()
        self._heap = Heap(counter.count)
        self._segmenter = Segmenter(counter, self._heap, self._clock)
        self._engine = GCEngine()

    def take(self, recorded: RecordedMessage) -> tuple[str, ...]:
        """Take in a message and return the ids of its segments; none if it is not one of its provider."""
        self._clock.advance(recorded.written_at)
        try:
            message = build(recorded.data, recorded.format, recorded.message_ids[0])
        except MessageError:
            return ()
        return self._segmenter.take(message)

    def segment(self, segment_id: str) -> ContextSegment:
        """Return a segment."""
        return self._heap.get(segment_id)

    def dead(self) -> dict[str, str]:
        """Return which segments could leave now, each with one of `REASONS`."""
        analysis = self.analysis()
        known = {segment.segment_id for segment in analysis.order}
        found = {
            segment.segment_id: ("copy" if segment.superseded_how == "identical" else "superseded")
            for segment in analysis.order
            if segment.superseded_by is not None
        }
        for segment in analysis.garbage:
            found.setdefault(segment.segment_id, "unreachable")
        options = self._engine.options
        is_cold = _coldness(analysis, options.cold_steps)
        for segment in analysis.cold(is_cold, options.verbose_tokens):
            found.setdefault(segment.segment_id, "verbose")
        return {name: reason for name, reason in found.items() if name in known}

    def described(self, segment_id: str, names: Mapping[str, str]) -> SegmentDetail:
        """Return what the engine says of a segment now; `names` has other ids for the segments."""
        return describe_segment(self._heap, segment_id, names)

    def analysis(self) -> Analysis:
        """Return what the engine says of the window now."""
        return self._engine.analyze(self._engine.state(self._heap, self._clock()))


def _coldness(analysis: Analysis, steps: int) -> Callable[[ContextSegment], bool]:
    now = analysis.state.heap.step
    return lambda segment: (
        segment.part == "tool_result" and now - segment.last_touched_step >= steps
    )


def _injected_again(
    segments: Iterable[ContextSegment],
    asides: Container[str],
    lines: dict[str, int],
    counter: TokenCounter,
) -> Iterator[GarbageItem]:
    """Yield what the agent's program put in and says again, or newer, further down.

    It is the whole text of an aside, or a reminder within the result of a tool.
    """
    found = [
        (segment, kind, text)
        for segment in segments
        for text in _injected(segment, segment.segment_id in asides)
        if (kind := harness_class(text)) is not None
    ]
    newest = {_subject(kind, text): number for number, (_, kind, text) in enumerate(found)}
    for number, (segment, kind, text) in enumerate(found):
        if newest[_subject(kind, text)] > number:
            yield GarbageItem(
                reason=INJECTED_AGAIN, how=kind, tokens=counter.count(text),
                name=_first_words(text), line=lines.get(segment.segment_id, 0),
            )  # fmt: skip


def _injected(segment: ContextSegment, is_aside: bool) -> Iterable[str]:
    if is_aside and segment.part == "text":
        return (segment.text,)
    return reminders_in(segment.text) if segment.part == "tool_result" else ()


def _subject(kind: str, text: str) -> tuple[str, str]:
    """Return what a newer text of the agent's program takes the place of an older one by."""
    if kind == "to-do lists":
        return (kind, "")
    paths = filter(looks_like_path, identifiers(text[:_HEAD])) if kind == _FILES else iter(())
    return (kind, next(paths, text))


def _first_words(text: str) -> str:
    said = (line for line in text.splitlines() if not line.startswith("<"))
    return next(said, text)[:_HEAD]


def _row(segment: ContextSegment, reason: str, lines: dict[str, int]) -> GarbageItem:
    return GarbageItem(
        reason=reason,
        how=segment.superseded_how or "",
        tokens=segment.tokens or 0,
        name=segment.file_path or segment.command or segment.name or segment.part or segment.type,
        line=lines.get(segment.segment_id, 0),
    )
