"""Recorded windows sent again request by request, with and without collections, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate, islice, pairwise
from typing import Any

import msgspec

from ctxgc.core import Message
from ctxgc.economics import PriceSheet
from ctxgc.errors import CtxgcError
from ctxgc.insight.clock import LONG_AGO, TranscriptClock
from ctxgc.session import RECALL_CALL, Session
from ctxgc.tokens import TokenCounter, message_tokens
from ctxgc.wire import repair
from ctxgc.wire.transcripts import RecordedMessage, Usage


class Bills(msgspec.Struct, kw_only=True):
    """What windows cost, in units of one uncached input token, output not included.

    `without` sends the whole conversation, `with_` what a session of ctxgc would have sent.
    """

    requests: int = 0
    collections: int = 0
    sent_without: int = 0
    sent_with: int = 0
    without: float = 0.0
    with_: float = msgspec.field(default=0.0, name="with")
    windows: int = 0
    stopped: str = ""

    @property
    def saved_percent(self) -> float:
        """What collecting takes off the bill; negative if it costs more than it saves."""
        return 100.0 * (self.without - self.with_) / self.without if self.without else 0.0


class BillReplay:
    """Replays windows one after the other into one pair of bills.

    Args:
        counter: counts tokens.
        sheet: the prices.
        limit: the window for messages, in the counter's tokens.
        beside: what each request holds besides the messages, in the counter's tokens.
    """

    def __init__(
        self, counter: TokenCounter, sheet: PriceSheet, *, limit: int, beside: int = 0
    ) -> None:
        self.bills = Bills()
        self._counter = counter
        self._sheet = sheet
        self._limit = limit
        self._beside = beside
        self._sizes: dict[int, tuple[Message, int]] = {}

    def window(self, view: Sequence[RecordedMessage]) -> None:
        """Send a window again."""
        if not view:
            return
        self._sizes.clear()
        self.bills.windows += 1
        history = repair([message.data for message in view], view[0].format).messages
        times = [message.written_at for message in view]
        try:
            self._play(history, times, view[0].format)
        except CtxgcError as error:
            self.bills.stopped = error.message

    def _play(
        self,
        history: Sequence[Any],
        times: list[datetime | None],
        form: Any,
    ) -> None:
        clock = TranscriptClock(next((at for at in times if at is not None), LONG_AGO))
        session = Session(
            self._limit, store="memory:", prices=self._sheet, counter=self._counter, clock=clock,
            recall_call=RECALL_CALL,
        )  # fmt: skip
        sent, all_sent = _Sent(self, clock), _Sent(self, clock)
        said: list[Message] = []
        with session:
            for place, message in enumerate(history):
                clock.advance(times[min(place, len(times) - 1)])
                if _is_answer(message) and place and not _is_answer(history[place - 1]):
                    session.messages()
                    self.bills.requests += 1
                    self._book(sent.request(session.history), all_sent.request(said))
                session.append(message, format=form)
                said.append(session.history[-1])
            self.bills.collections += sum(result.success for result in session.gc_history)

    def _book(self, ours: tuple[int, float], plain: tuple[int, float]) -> None:
        self.bills.sent_with += ours[0]
        self.bills.with_ += ours[1]
        self.bills.sent_without += plain[0]
        self.bills.without += plain[1]

    def size(self, message: Message) -> int:
        """Return the tokens of a message; each object is counted once."""
        known = self._sizes.get(id(message))
        if known is None or known[0] is not message:
            known = self._sizes[id(message)] = (message, message_tokens(message, self._counter))
        return known[1]

    def cost(self, cached: int, fresh: int) -> tuple[int, float]:
        """Return the tokens of a request and what they cost."""
        return cached + fresh, self._sheet.read * cached + self._sheet.write * fresh

    def is_cold(self, idle: float) -> bool:
        """Return whether the cache has expired after this many seconds."""
        ttl = self._sheet.ttl_seconds
        return ttl is not None and idle > ttl

    @property
    def beside(self) -> int:
        """What every request holds before its messages."""
        return self._beside


class _Sent:
    """What a line of requests sent last: the next one finds its common beginning in the cache."""

    def __init__(self, replay: BillReplay, clock: TranscriptClock) -> None:
        self._replay = replay
        self._clock = clock
        self._before: list[Message] = []
        self._sums = [0]
        self._at: datetime | None = None

    def request(self, messages: list[Message]) -> tuple[int, float]:
        now = self._clock()
        idle = (now - self._at).total_seconds() if self._at is not None else 0.0
        warm = self._at is not None and not self._replay.is_cold(idle)
        shared = _shared(self._before, messages)
        del self._sums[shared + 1 :]
        sizes = map(self._replay.size, messages[shared:])
        self._sums.extend(islice(accumulate(sizes, initial=self._sums[-1]), 1, None))
        self._before, self._at = list(messages), now
        cached = self._sums[shared] + self._replay.beside if warm else 0
        return self._replay.cost(cached, self._sums[-1] + self._replay.beside - cached)


def _shared(before: list[Message], now: list[Message]) -> int:
    """Return how many messages two requests begin with in common."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((n for n, (a, b) in pairs if a is not b), min(len(before), len(now)))


def _is_answer(message: Any) -> bool:
    role = message.get("role")
    if role is not None:
        return bool(role == "assistant")
    kind = str(message.get("type", ""))
    return not kind.endswith("_output")


# -- Requests: what was paid, and where the prompt cache broke


_LEAST_LOSS = 2_048
_LEAST_SHARE = 0.1


class SessionRequest(msgspec.Struct):
    """One request of the main conversation; `counted` is what the transcript shows of its window.

    If the provider's usage is not in the file, `prompt` is estimated and the cache is unknown.
    """

    line: int
    window: int
    counted: int
    prompt: int
    at: datetime | None = None
    model: str | None = None
    reply_id: str | None = None
    usage: Usage | None = None


class CacheBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A request that had to write again what the one before had cached."""

    request: int
    line: int
    lost: int
    why: str
    at: datetime | None = None


def cache_breaks(requests: list[SessionRequest], sheet: PriceSheet) -> Iterator[CacheBreak]:
    """Yield the requests that read much less from the cache than the one before left there."""
    for number, (before, now) in enumerate(pairwise(requests), 2):
        if before.usage is None or now.usage is None:
            continue
        left = before.usage.cache_read + before.usage.cache_write
        lost = left - now.usage.cache_read
        if lost > max(_LEAST_LOSS, _LEAST_SHARE * left):
            why = _why(before, now, sheet)
            yield CacheBreak(request=number, line=now.line, lost=lost, why=why, at=now.at)


def _why(before: SessionRequest, now: SessionRequest, sheet: PriceSheet) -> str:
    if before.window != now.window:
        return "compaction"
    if before.model != now.model:
        return "model changed"
    if before.at is not None and now.at is not None and sheet.ttl_seconds is not None:
        idle = (now.at - before.at).total_seconds()
        if idle > sheet.ttl_seconds:
            return "idle too long"
    return "the prefix changed"


def paid(usages: list[Usage], sheet: PriceSheet) -> float:
    """Return what requests cost, in units of one uncached input token, output included."""
    return sum(
        usage.uncached
        + sheet.read * usage.cache_read
        + sheet.write * usage.cache_write
        + sheet.output * usage.output
        for usage in usages
    )
