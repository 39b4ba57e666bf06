"""The timeline of a recorded session, from its transcript alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment, is_tombstone
from ctxgc.economics import ModelPrice
from ctxgc.errors import InputError
from ctxgc.insight.cost import prices_in_use, spend_of
from ctxgc.insight.fill import WindowCount, count_window
from ctxgc.insight.garbage import WindowHeap
from ctxgc.insight.measurement import Measurement, ProgressCallback, TranscriptPass
from ctxgc.insight.replay import CacheBreak, SessionRequest, cache_breaks
from ctxgc.insight.segment_reason import SegmentDetail
from ctxgc.insight.timeline import (
    CacheState,
    Mark,
    SegmentSpan,
    SessionTimeline,
    SpanBook,
    TimelineChange,
    TimelineRequest,
    TimelineSegment,
    segment_kind,
    segment_label,
)
from ctxgc.tokens import TokenCounter, counter_for
from ctxgc.wire.transcripts import RecordedMessage, Transcript

BESIDE = "beside"
"""The id of what a request holds besides the messages of the file."""
_BESIDE_LABEL = "system prompt and tools, not in the transcript"
_COMPACTED = "the agent's compaction put a summary in place of the window"
_MOST_LOOKS, _LOOKS_AT_WINDOW = 1_000, 16
_END = 1 << 62


def timeline_of(
    transcript: Transcript,
    *,
    context_limit: int | None = None,
    config: GCConfig | None = None,
    progress: ProgressCallback = lambda _stage, _done, _all: None,
) -> SessionTimeline:
    """Return the window of a recorded session at each of its requests.

    What could have left is looked for at each request of a session of up to 1,000, and at sixteen of
    each later window; between two looks the last one holds. Messages that an agent took back are not shown.

    Args:
        transcript: the session.
        context_limit: the model's window in tokens; by default what the file or the model's name says.
        config: gives the limits of the zones.
        progress: is called with the stage, the work done and the total.
    """
    windows = _Windows(transcript, counter_for(None))
    measured = Measurement(
        transcript, context_limit=context_limit, prices=None, config=config or GCConfig(),
        progress=progress, on_window=windows.end,
    )  # fmt: skip
    windows.finish(measured)
    return SessionTimeline(
        requests=_requests(measured),
        segments=windows.segments(),
        changes=windows.changes(),
    )


# -- One segment


def recorded_detail(transcript: Transcript, name: str) -> SegmentDetail:
    """Return what is known of a segment of a recorded session, in the last window that had it.

    Raises:
        InputError: no window has a segment with this name.
    """
    message_id, _, _ = name.rpartition(".")
    last: list[Sequence[RecordedMessage]] = []

    def keep(passed: TranscriptPass) -> None:
        view = passed.view()
        if any(message.message_ids[0] == message_id for message in view):
            last[:] = [view]

    passed = TranscriptPass(transcript, counter_for(None), keep)
    passed.run()
    keep(passed)
    for view in last:
        heap = WindowHeap(counter_for(None))
        names = {
            inner: f"{message.message_ids[0]}.{place}"
            for message in view
            for place, inner in enumerate(heap.take(message))
        }
        for inner, given in names.items():
            if given == name:
                return heap.described(inner, names)
    raise InputError(
        f"there is no segment '{name}'", hint="the timeline lists them", field="segment"
    )


# -- Requests


def _requests(measured: Measurement) -> list[TimelineRequest]:
    """Return the requests, and the window as it is now."""
    known, table = measured.passed.requests, prices_in_use()
    breaks = {each.request: each for each in cache_breaks(known, measured.sheet)}
    found = [_request(measured, n, breaks.get(n), table) for n in range(1, len(known) + 1)]
    now = TimelineRequest(
        n=len(found) + 1, tokens=measured.window.tokens, limit=measured.limit, marks=["now"],
        at=measured.transcript.facts.last_at,
    )  # fmt: skip
    return [*found, now]


def _request(
    measured: Measurement, n: int, broken: CacheBreak | None, table: Sequence[ModelPrice]
) -> TimelineRequest:
    known = measured.passed.requests
    request, before = known[n - 1], known[n - 2] if n > 1 else None
    marks: list[Mark] = []
    if before is not None and before.window != request.window:
        marks.append("compaction")
    if broken is not None:
        marks.append("cache_break")
    found = TimelineRequest(
        n=n, tokens=request.prompt, limit=measured.limit, at=request.at, marks=marks
    )
    usage = request.usage
    if usage is None:
        return found
    spend = spend_of(usage, table, measured.transcript.facts.model)
    return msgspec.structs.replace(
        found,
        input=usage.uncached,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        output=usage.output,
        cost=None if spend.unpriced else spend.dollars,
        cache=_cache_state(request, broken),
        cache_cause=None if broken is None else broken.why,
    )


def _cache_state(request: SessionRequest, broken: CacheBreak | None) -> CacheState | None:
    usage = request.usage
    if usage is None or not (usage.cache_read or usage.cache_write):
        return None
    if broken is not None:
        return "cold" if broken.why == "idle too long" else "part" if usage.cache_read else "miss"
    return "hit" if usage.cache_read else "cold"


# -- Segments


class _Windows:
    """Takes the windows of a session one after the other and keeps what is known of their segments.

    Each window has the scale of its own reports, so that its segments add up to what was sent.
    """

    def __init__(self, transcript: Transcript, counter: TokenCounter) -> None:
        self._transcript = transcript
        self._counter = counter
        self._book = SpanBook()
        self._known: dict[str, TimelineSegment] = {}
        self._beside: list[SegmentSpan] = []
        self._gone: list[tuple[int, str]] = []
        self._before: list[str] = []
        self._looks = 0

    def end(self, passed: TranscriptPass) -> None:
        """Take the window that a compaction is about to end."""
        transcript = self._transcript
        count = count_window(passed.window, transcript.kind, transcript.facts, self._counter)
        self._take(passed.view(), count, _asked(passed))

    def finish(self, measured: Measurement) -> None:
        """Take the last window, with what came after its last request."""
        passed = measured.passed
        asked = [*_asked(passed), (len(passed.requests) + 1, _END)]
        self._take(measured.view, measured.window, asked)

    def _take(
        self, view: Sequence[RecordedMessage], count: WindowCount, asked: list[tuple[int, int]]
    ) -> None:
        if not asked:
            return
        first, last = asked[0][0], asked[-1][0]
        names = self._play(view, count, asked)
        self._book.hide_all(last + 1)
        self._beside.append(SegmentSpan(first, last, count.beside))
        self._gone += [(first, name) for name in self._before if name not in names]
        self._before = list(names)

    def _play(
        self, view: Sequence[RecordedMessage], count: WindowCount, asked: list[tuple[int, int]]
    ) -> dict[str, str]:
        """Send the requests of a window again; return its segments by their names.

        `asked` are their numbers, and the lines before which they were sent.
        """
        heap, names = WindowHeap(self._counter), dict[str, str]()
        looks, place = self._looked_at(asked), 0
        for n, line in asked:
            while place < len(view) and view[place].lines[0] < line:
                for name, inner in self._named(heap, view[place]):
                    names[name] = inner
                    self._show(name, heap.segment(inner), count, n)
                place += 1
            if n in looks:
                dead = heap.dead()
                for name, inner in names.items():
                    self._book.restate(name, n, dead.get(inner, "alive"))
        return names

    def _looked_at(self, asked: list[tuple[int, int]]) -> set[int]:
        numbers = [n for n, _ in asked]
        few = self._looks + len(numbers) <= _MOST_LOOKS
        step = 1 if few else -(-len(numbers) // _LOOKS_AT_WINDOW)
        found = {*numbers[::step], numbers[-1]}
        self._looks += len(found)
        return found

    def _named(self, heap: WindowHeap, recorded: RecordedMessage) -> Iterator[tuple[str, str]]:
        """Take in a message and yield its segments: our name, and that of the heap."""
        for place, inner in enumerate(heap.take(recorded)):
            name = f"{recorded.message_ids[0]}.{place}"
            if name not in self._known:
                self._known[name] = _described(name, heap.segment(inner), recorded)
            yield name, inner

    def _show(self, name: str, segment: ContextSegment, count: WindowCount, request: int) -> None:
        tokens = count.scaled(segment.tokens or 0)
        self._known[name].tokens = tokens
        self._book.show(name, request, tokens, "stub" if is_tombstone(segment.text) else "whole")

    def segments(self) -> list[TimelineSegment]:
        """Return all segments with their spans, in the tokens of the provider."""
        for name, segment in self._known.items():
            segment.spans = self._book.spans(name)
        beside = TimelineSegment(
            id=BESIDE, label=_BESIDE_LABEL, source="system", policy="locked", role="system",
            tokens=self._beside[-1].tokens, spans=self._beside,
        )  # fmt: skip
        return [
            *([beside] if any(span.tokens for span in self._beside) else []),
            *self._known.values(),
        ]

    def changes(self) -> list[TimelineChange]:
        """Return what the compactions of the agent took."""
        return [
            TimelineChange(
                request=request, segment=name, kind="compacted", why=_COMPACTED,
                tokens=self._known[name].tokens,
            )
            for request, name in self._gone
        ]  # fmt: skip


def _asked(passed: TranscriptPass) -> list[tuple[int, int]]:
    """Return the requests of the present window: their numbers, and the lines of their answers."""
    window = passed.window.number
    return [(n, each.line) for n, each in enumerate(passed.requests, 1) if each.window == window]


def _described(name: str, segment: ContextSegment, recorded: RecordedMessage) -> TimelineSegment:
    kind = segment_kind(segment)
    if recorded.is_summary:
        kind = "summary"
    elif recorded.is_aside and kind == "message":
        kind = "reminder"
    return TimelineSegment(
        id=name, label=segment_label(segment), source=kind, policy=segment.policy,
        role=segment.role or "", tokens=segment.tokens or 0, tool=segment.name, file=segment.file_path,
    )  # fmt: skip
