"""A transcript read once: its requests and windows, its token scale, its limit and its prices."""

from __future__ import annotations

from collections.abc import Callable

from ctxgc.config import GCConfig
from ctxgc.economics import PriceSheet, price_sheet, sheet_of
from ctxgc.insight.fill import WindowFill, count_window, fill_of, window_limit
from ctxgc.insight.replay import SessionRequest
from ctxgc.insight.survey import Survey
from ctxgc.tokens import TokenCounter, counter_for
from ctxgc.wire.transcripts import (
    Compaction,
    Item,
    RecordedMessage,
    RecordedWindow,
    Rollback,
    Transcript,
    TranscriptEntry,
    Usage,
    whole_messages,
)

# -- One pass over the file, in bounded memory


_MOST_WINDOW = 2_000_000
"""No model's window is larger, in tokens: of a longer conversation only the end is analysed."""

WindowSeen = Callable[["TranscriptPass"], None]


class TranscriptPass:
    """What one reading of a transcript collects.

    Args:
        transcript: the file.
        counter: counts the tokens of each entry.
        on_window: is called before a compaction ends a window.
    """

    def __init__(
        self, transcript: Transcript, counter: TokenCounter, on_window: WindowSeen | None = None
    ) -> None:
        self.survey = Survey(counter)
        self.requests: list[SessionRequest] = []
        self.side_usages: list[Usage] = []
        self.usages: list[Usage] = []
        self.compactions = 0
        self.window = RecordedWindow(_MOST_WINDOW)
        self._transcript = transcript
        self._on_window = on_window
        self._chained = transcript.kind == "claude_code"
        self._counted = 0
        self._last_reply: str | None = None
        self._is_answering = False

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Read the file once."""
        for item in self._transcript.items(progress):
            self._take(item)

    def view(self) -> list[RecordedMessage]:
        """Return the messages of the last window."""
        return list(whole_messages(self.entries()))

    def entries(self) -> list[TranscriptEntry]:
        """Return the entries of the last window."""
        return self.window.entries(chained=self._chained)

    def _take(self, item: Item) -> None:
        weight = 0
        match item:
            case TranscriptEntry():
                weight = self._entry(item)
            case Usage():
                self._usage(item)
            case Compaction():
                self._compaction()
            case Rollback():
                pass
        self.window.take(item, weight)

    def _entry(self, entry: TranscriptEntry) -> int:
        if not entry.is_side:
            answers = _answers(entry)
            if answers and (not self._is_answering or entry.reply_id != self._last_reply):
                self._request(entry)
            self._last_reply = entry.reply_id if answers else self._last_reply
            self._is_answering = answers
        tokens = self.survey.take(entry)
        self._counted += tokens
        return tokens

    def _request(self, entry: TranscriptEntry) -> None:
        """Note a request to the model: it sent what was counted so far."""
        last = self.requests[-1] if self.requests else None
        if last is not None and entry.reply_id is not None and last.reply_id == entry.reply_id:
            return
        self.requests.append(
            SessionRequest(
                line=entry.line, window=self.window.number, counted=self._counted, prompt=0,
                at=entry.written_at, model=entry.model, reply_id=entry.reply_id,
            )
        )  # fmt: skip

    def _usage(self, usage: Usage) -> None:
        if usage.is_side:
            _put(self.side_usages, usage)
            return
        _put(self.usages, usage)
        if self.requests:
            request = self.requests[-1]
            request.usage, request.prompt = usage, usage.prompt
            request.model = request.model or usage.model

    def _compaction(self) -> None:
        if not self.window.items:
            return
        self.compactions += 1
        if self._on_window is not None:
            self._on_window(self)
        self._counted = 0


def _put(usages: list[Usage], usage: Usage) -> None:
    """Add a usage; it replaces the last one if both are of the same answer."""
    if usages and usage.reply_id is not None and usages[-1].reply_id == usage.reply_id:
        usages[-1] = usage
    else:
        usages.append(usage)


def _answers(entry: TranscriptEntry) -> bool:
    """Return whether the model wrote this entry."""
    if entry.format == "responses" and "role" not in entry.data:
        return not str(entry.data.get("type", "")).endswith("_output")
    return entry.data.get("role") == "assistant"


WHOLE_BYTES = 8 << 20
"""Up to this size every window is analysed, above it only the last."""

_MARGIN = 1.1

ProgressCallback = Callable[[str, int, int], None]
"""Is called with the stage, how much of it is done, and how much there is."""


class Measurement:
    """What the parts of an insight are computed from.

    `window` is the window now as its provider counts it, `view` its messages and `now` their survey; `beside`
    is what a request holds besides the messages of the file. `windows` are those that the bill is about.
    """

    def __init__(
        self,
        transcript: Transcript,
        *,
        context_limit: int | None,
        prices: str | PriceSheet | None,
        config: GCConfig,
        progress: ProgressCallback,
        on_window: WindowSeen = lambda _passed: None,
    ) -> None:
        self.transcript = transcript
        self.config = config
        self.progress = progress
        self._on_window = on_window
        self.counter: TokenCounter = counter_for(None)
        self.windows: list[list[RecordedMessage]] = []
        self.passed = self._read()
        facts = transcript.facts
        self.window = count_window(self.passed.window, transcript.kind, facts, self.counter)
        self.scale = self.window.scale
        self.sheet_is_named = prices is not None
        self.sheet = price_sheet(prices or _prices(transcript, self.passed.usages))
        self.limit = context_limit or window_limit(facts, self.passed.window)
        self.view = self.passed.view()
        self.now = self._survey_now()
        self.beside = self.window.beside
        self._size_requests()
        self._close_window()

    @property
    def is_trimmed(self) -> bool:
        """Whether the conversation is longer than the window, so that the last window lacks its beginning."""
        return self.passed.window.dropped > 0

    @property
    def is_whole(self) -> bool:
        """Whether every window is analysed."""
        return self.transcript.size <= WHOLE_BYTES

    def scaled(self, tokens: float) -> int:
        """Return our tokens as the provider counts them."""
        return self.window.scaled(tokens)

    def fill(self, tokens: int) -> WindowFill:
        """Return how full the window is with so many tokens."""
        return fill_of(tokens, self.limit, self.config)

    def _read(self) -> TranscriptPass:
        size = self.transcript.size
        passed = TranscriptPass(self.transcript, self.counter, self._ended)
        passed.run(lambda done: self.progress("reading", done, size))
        return passed

    def _ended(self, passed: TranscriptPass) -> None:
        if self.is_whole:
            self.windows.append(passed.view())
        self._on_window(passed)

    def _close_window(self) -> None:
        """Add the last window, without the beginning that no request can have held."""
        room = self.limit / (self.scale or 1.0)
        self.passed.window.shrink(int(_MARGIN * room))
        self.windows.append(self.passed.view())

    def _survey_now(self) -> Survey:
        survey = Survey(self.counter)
        for entry in self.passed.entries():
            survey.take(entry)
        return survey

    def _size_requests(self) -> None:
        """Compute the size of requests without reported usage."""
        for request in self.passed.requests:
            if request.usage is None:
                request.prompt = self.beside + self.scaled(request.counted)


def _prices(transcript: Transcript, usages: list[Usage]) -> str:
    """Return the sheet of the session's provider, and of the lifetime that its agent mostly asks for."""
    usual = "anthropic-5m" if transcript.format == "anthropic" else "openai"
    sheet = sheet_of(transcript.facts.model) or usual
    written, long = sum(u.cache_write for u in usages), sum(u.cache_write_1h for u in usages)
    return "anthropic-1h" if sheet == "anthropic-5m" and 2 * long > written else sheet
