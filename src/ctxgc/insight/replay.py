"""Recorded windows sent again request by request, with and without collections, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate, islice, pairwise
from typing import Any

import msgspec

from ctxgc.core import Message
from ctxgc.economics import MODEL_PRICES, ModelPrice, PriceSheet
from ctxgc.errors import CtxgcError
from ctxgc.insight.clock import LONG_AGO, TranscriptClock
from ctxgc.insight.cost import Spend, spend_of
from ctxgc.session import RECALL_CALL, Session
from ctxgc.tokens import TokenCounter, message_tokens
from ctxgc.wire import repair
from ctxgc.wire.transcripts import RecordedMessage, Usage


class BillReplay:
    """Replays windows one after the other, and books what is sent: everything, and with collections.

    Args:
        counter: counts tokens.
        sheet: how the provider's cache behaves.
        limit: the window for messages, in the counter's tokens.
        beside: what each request holds besides the messages, in the counter's tokens.
        scale: how many of the provider's tokens one of the counter's is.
        model: what requests are sent to that do not say.
        table: the prices of models.

    `without` and `with_` are in the provider's tokens, and have no output.
    """

    def __init__(
        self,
        counter: TokenCounter,
        sheet: PriceSheet,
        *,
        limit: int,
        beside: int = 0,
        scale: float = 1.0,
        model: str | None = None,
        table: Sequence[ModelPrice] = MODEL_PRICES,
    ) -> None:
        self.collections = 0
        self.windows = 0
        self.stopped = ""
        self.without = Spend()
        self.with_ = Spend()
        self._counter = counter
        self._sheet = sheet
        self._limit = limit
        self._beside = beside
        self._scale = scale
        self._model = model
        self._table = table
        self._sizes: dict[int, tuple[Message, int]] = {}

    def window(self, view: Sequence[RecordedMessage]) -> None:
        """Send a window again."""
        if not view:
            return
        self._sizes.clear()
        self.windows += 1
        history = repair([message.data for message in view], view[0].format).messages
        try:
            self._play(history, view)
        except CtxgcError as error:
            self.stopped = error.message

    def _play(self, history: Sequence[Any], view: Sequence[RecordedMessage]) -> None:
        times = (message.written_at for message in view)
        clock = TranscriptClock(next((at for at in times if at is not None), LONG_AGO))
        session = Session(
            self._limit, store="memory:", prices=self._sheet, counter=self._counter, clock=clock,
            recall_call=RECALL_CALL,
        )  # fmt: skip
        sent, all_sent = _Sent(self, clock), _Sent(self, clock)
        said: list[Message] = []
        with session:
            for place, message in enumerate(history):
                recorded = view[min(place, len(view) - 1)]
                clock.advance(recorded.written_at)
                if _is_answer(message) and place and not _is_answer(history[place - 1]):
                    session.messages()
                    model = recorded.model
                    self._book(self.with_, sent.request(session.history, model), recorded)
                    self._book(self.without, all_sent.request(said, model), recorded)
                session.append(message, format=view[0].format)
                said.append(session.history[-1])
            self.collections += sum(result.success for result in session.gc_history)

    def _book(self, line: Spend, sent: tuple[int, int], recorded: RecordedMessage) -> None:
        """Add a request to a line of the bill, given what it reads from the cache and what is new."""
        cached, fresh = (round(self._scale * tokens) for tokens in sent)
        is_written = self._sheet.write != 1.0
        usage = Usage(
            uncached=0 if is_written else fresh,
            cache_read=cached,
            cache_write=fresh if is_written else 0,
            cache_write_1h=fresh if self._sheet.name == "anthropic-1h" else 0,
            output=0,
            written_at=recorded.written_at,
            model=recorded.model,
        )
        line.add(spend_of(usage, self._table, self._model))

    def size(self, message: Message) -> int:
        """Return the tokens of a message; each object is counted once."""
        known = self._sizes.get(id(message))
        if known is None or known[0] is not message:
            known = self._sizes[id(message)] = (message, message_tokens(message, self._counter))
        return known[1]

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
        self._model: str | None = None

    def request(self, messages: list[Message], model: str | None) -> tuple[int, int]:
        """Return how many tokens a request reads from the cache, and how many are new to it."""
        now = self._clock()
        idle = (now - self._at).total_seconds() if self._at is not None else 0.0
        # Every model has a cache of its own.
        warm = self._at is not None and model == self._model and not self._replay.is_cold(idle)
        shared = _shared(self._before, messages)
        del self._sums[shared + 1 :]
        sizes = map(self._replay.size, messages[shared:])
        self._sums.extend(islice(accumulate(sizes, initial=self._sums[-1]), 1, None))
        self._before, self._at, self._model = list(messages), now, model
        cached = self._sums[shared] + self._replay.beside if warm else 0
        return cached, self._sums[-1] + self._replay.beside - cached


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


# -- Requests, and where the prompt cache broke


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
