"""Measured: a transcript read once, with its units, its window and its prices settled."""

from __future__ import annotations

from collections.abc import Callable

from ctxgc.config import GCConfig
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.guard.zones import zone_of
from ctxgc.insight.limits import limit_for
from ctxgc.insight.pass_over import Pass
from ctxgc.insight.requests import scale_of
from ctxgc.insight.sizes import Sizer
from ctxgc.insight.survey import Survey
from ctxgc.tokens import TokenCounter, counter_for
from ctxgc.wire.transcripts import Recorded, Transcript

WHOLE_BYTES = 8 << 20
"""Up to this size every window is looked at closely, above it only the last."""

_MARGIN = 1.1

Tell = Callable[[str, int, int], None]
"""Hears the stage, how much of it is done, and how much there is."""


class Measured:
    """What the parts of an insight are made from.

    `windows` are the windows to look at closely, the last one at the end; `now` is the survey of the
    last one, counted exactly; `beside` is what each request holds beside its messages.
    """

    def __init__(
        self,
        transcript: Transcript,
        *,
        context_limit: int | None,
        prices: str | PriceSheet | None,
        config: GCConfig,
        tell: Tell,
    ) -> None:
        self.transcript = transcript
        self.config = config
        self.tell = tell
        self.counter: TokenCounter = counter_for(None)
        self.windows: list[list[Recorded]] = []
        self.passed = self._read()
        self.scale = scale_of(self.passed.requests)
        self.sheet = price_sheet(prices or _prices(transcript))
        self.limit = context_limit or self._limit()
        self._close_window()
        self._last = next((r for r in reversed(self.passed.requests) if r.usage is not None), None)
        self._asked = 0
        self.now = self._survey_now()
        self.beside = self._beside()
        self._size_requests()

    @property
    def is_trimmed(self) -> bool:
        """Whether more was said than the window holds, so that the last window lacks its beginning."""
        return self.passed.window.dropped > 0

    @property
    def is_whole(self) -> bool:
        """Whether every window is looked at closely."""
        return self.transcript.size <= WHOLE_BYTES

    def scaled(self, tokens: float) -> int:
        """Return tokens of ours as the provider counts them."""
        return round(tokens * (self.scale or 1.0))

    def percent(self, tokens: int) -> float:
        """Return tokens as a share of the window."""
        return round(100.0 * tokens / self.limit, 1)

    def zone(self, tokens: int) -> str:
        """Return the zone that a window of so many tokens is in."""
        return zone_of(self.percent(tokens), self.config).value

    def _read(self) -> Pass:
        size = self.transcript.size
        on_window = self.windows.append if self.is_whole else None
        passed = Pass(self.transcript, Sizer(self.counter.count), on_window)
        passed.run(lambda done: self.tell("reading", done, size))
        return passed

    def _close_window(self) -> None:
        """Take the last window; its beginning goes where it is more than a request can have held."""
        room = self.limit / (self.scale or 1.0)
        self.passed.window.shrink(int(_MARGIN * room))
        self.windows.append(self.passed.view())

    def _limit(self) -> int:
        facts = self.transcript.facts
        largest = max((request.prompt for request in self.passed.requests), default=0)
        return limit_for(facts.model, facts.context_limit, largest)

    def _survey_now(self) -> Survey:
        survey = Survey(Sizer(self.counter.count, sample=None))
        for entry in self.passed.entries():
            tokens = survey.take(entry)
            if self._last is not None and entry.line < self._last.line:
                self._asked += tokens
        return survey

    def _beside(self) -> int:
        """Return what was reported beyond what was counted; without reports, what the file shows."""
        if self._last is not None:
            counted = self._last.counted if self.is_trimmed else self._asked
            return max(0, self._last.prompt - self.scaled(counted))
        facts = self.transcript.facts
        return self.counter.count(facts.system) + self.counter.count(facts.tools)

    def _size_requests(self) -> None:
        """Give the requests without reported usage their computed size."""
        for request in self.passed.requests:
            if request.usage is None:
                request.prompt = self.beside + self.scaled(request.counted)


def _prices(transcript: Transcript) -> str:
    model = (transcript.facts.model or "").lower()
    if transcript.format == "anthropic" or "claude" in model:
        return "anthropic-5m"
    return next((name for name in ("gemini", "deepseek") if name in model), "openai")
