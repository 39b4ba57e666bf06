"""One pass over a transcript: survey, requests and windows, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable

from ctxgc.insight.requests import Request
from ctxgc.insight.sizes import Sizer
from ctxgc.insight.survey import Survey
from ctxgc.wire.transcripts import Compaction, Entry, Item, Recorded, Rollback, Transcript, Usage
from ctxgc.wire.transcripts.recorded import Window, merged

MOST_WINDOW = 2_000_000
"""No model's window is larger, in tokens: of a longer conversation only its end is looked at closely."""

WindowSeen = Callable[[list[Recorded]], None]


class Pass:
    """What one reading of a transcript leaves behind.

    Args:
        transcript: the file.
        sizer: gives the tokens of what passes by.
        on_window: hears each window that a compaction ended; None lets them go unseen.
    """

    def __init__(
        self, transcript: Transcript, sizer: Sizer, on_window: WindowSeen | None = None
    ) -> None:
        self.survey = Survey(sizer)
        self.requests: list[Request] = []
        self.side_usages: list[Usage] = []
        self.usages: list[Usage] = []
        self.compactions = 0
        self.window = Window(MOST_WINDOW)
        self._transcript = transcript
        self._on_window = on_window
        self._chained = transcript.kind == "claude_code"
        self._counted = 0
        self._last_reply: str | None = None
        self._is_answering = False

    def run(self, tell: Callable[[int], None] | None = None) -> None:
        """Read the file once."""
        for item in self._transcript.items(tell):
            self._take(item)

    def view(self) -> list[Recorded]:
        """Return the messages of the last window."""
        return list(merged(self.entries()))

    def entries(self) -> list[Entry]:
        """Return the entries of the last window."""
        return self.window.entries(chained=self._chained)

    def _take(self, item: Item) -> None:
        weight = 0
        match item:
            case Entry():
                weight = self._entry(item)
            case Usage():
                self._usage(item)
            case Compaction():
                self._compaction()
            case Rollback():
                pass
        self.window.take(item, weight)

    def _entry(self, entry: Entry) -> int:
        if not entry.is_side:
            answers = _answers(entry)
            if answers and (not self._is_answering or entry.reply_id != self._last_reply):
                self._request(entry)
            self._last_reply = entry.reply_id if answers else self._last_reply
            self._is_answering = answers
        tokens = self.survey.take(entry)
        self._counted += tokens
        return tokens

    def _request(self, entry: Entry) -> None:
        """Note that the agent asked the model here: what was counted so far is what it sent."""
        last = self.requests[-1] if self.requests else None
        if last is not None and entry.reply_id is not None and last.reply_id == entry.reply_id:
            return
        self.requests.append(
            Request(
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
            self._on_window(self.view())
        self._counted = 0


def _put(usages: list[Usage], usage: Usage) -> None:
    """Add a usage; one of the same answer takes the place of the last."""
    if usages and usage.reply_id is not None and usages[-1].reply_id == usage.reply_id:
        usages[-1] = usage
    else:
        usages.append(usage)


def _answers(entry: Entry) -> bool:
    """Tell whether the model wrote this."""
    if entry.format == "responses" and "role" not in entry.data:
        return not str(entry.data.get("type", "")).endswith("_output")
    return entry.data.get("role") == "assistant"
