"""What a session takes on the scripted agent's history: for each request, and for a collection.

Times are processor seconds of this process; the store is in memory, so that they are those of the
session and not of a disk. `beyond counting` is what is left without the tokenizer's share.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import msgspec

from bench.counting import TimedCounter
from ctxgc import GCConfig, GCTriggerReason, Session
from ctxgc.collector import Host
from ctxgc.session import RECALL_CALL, Event
from ctxgc.strategies import TruncateStrategy
from ctxgc.testing import make_session
from ctxgc.tokens import TokenCounter

Json = dict[str, Any]

LONGEST = 6_000
ROOMY = 10**9


class QuarterCounter:
    """One token for four characters, as the peers count."""

    name = "quarter"
    exact = False

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        return (len(text) + 3) // 4


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for each message beyond a history of this size.

    `view` is the median of those requests before which nothing was due, `due` that of the others.
    """

    messages: int
    append: float
    view: float
    due: float
    counting: float

    @property
    def beyond_counting(self) -> float:
        """What a session adds to one message in and one view out."""
        return self.append - self.counting + self.view


def history(messages: int) -> list[Json]:
    """Return the history that everything here is measured on.

    Long tool results are cut, as agents cut them: about 170 tokens are left for each message.
    """
    made = make_session(seed=7, messages=messages).messages
    return [
        {**each, "content": each["content"][:LONGEST]} if each["role"] == "tool" else each
        for each in made
    ]


def measure_requests(size: int, runs: int = 3) -> Requests:
    """Return the fastest of some runs: other load only makes a run slower."""
    return min((_requests(size) for _ in range(runs)), key=lambda found: found.beyond_counting)


def _requests(size: int, more: int = 200) -> Requests:
    """Append messages one by one to a history of `size` and ask for the view after each."""
    messages = history(size + more)
    counter = TimedCounter()
    session = Session(ROOMY, store="memory:", recall_call=RECALL_CALL, counter=counter)
    session.extend(messages[:size])
    counter.take()
    events: list[Event] = []
    session.events(events.append)
    appends: list[float] = []
    counts: list[float] = []
    views: list[float] = []
    dues: list[float] = []
    gc.disable()
    for place, message in enumerate(messages[size:], size):
        appends.append(_timed(session.append, message))
        counts.append(counter.take())
        if not _waits(messages[place - 20 : place + 1]):
            events.clear()
            seconds = _timed(session.messages)
            (dues if events else views).append(seconds)
    gc.enable()
    return Requests(
        messages=size,
        append=median(appends),
        view=median(views),
        due=median(dues) if dues else 0.0,
        counting=median(counts),
    )


def measure_collection(
    size: int, plugin: str, runs: int = 3, counter: TokenCounter | None = None
) -> float:
    """Return the seconds of one full collection of a history, from its size to 60% of it.

    The fastest of some runs counts, as for requests and for the peers.
    """
    messages = history(size)
    return min(_collection(messages, plugin, counter) for _ in range(runs))


def _collection(messages: list[Json], plugin: str, counter: TokenCounter | None) -> float:
    session = Session(
        ROOMY, store="memory:", recall_call=RECALL_CALL, plugin=plugin, counter=counter
    )
    session.extend(messages)
    session.flush()  # an agent's messages are stored one by one, long before they are collected
    target = int(session.usage().total_tokens * 0.6)
    gc.collect()
    gc.freeze()  # as in `bench.engine_case`: Python's own collector would look at the heap each time
    seconds = _timed(session.collect, target)
    gc.unfreeze()
    if session.gc_history[-1].shortfall:
        raise AssertionError(f"{plugin} stayed {session.gc_history[-1].shortfall} tokens short")
    return seconds


def measure_truncation(size: int, runs: int = 3) -> float:
    """Return the seconds of gc_truncate by itself: a history in, a shorter one out, nothing stored.

    That is all that LangChain's `trim_messages` does, too; a session also makes it durable.
    """
    counter = QuarterCounter()
    session = Session(ROOMY, store="memory:", counter=counter)
    session.extend(history(size))
    messages, total = list(session.history), session.usage().total_tokens
    usage = {
        "total_tokens": total,
        "context_limit": total,
        "target_tokens": int(total * 0.6),
    }
    found: list[float] = []
    for _ in range(runs):
        strategy = TruncateStrategy()
        strategy.bind(Host(counter))
        reason = GCTriggerReason.MANUAL
        found.append(_timed(strategy.collect, messages, usage, GCConfig(), reason))
    return min(found)


def _waits(messages: list[Json]) -> bool:
    """Return whether a tool call has no result yet; no batch is longer than what is passed."""
    calls = {call["id"] for message in messages for call in message.get("tool_calls", ())}
    return not calls.issubset(message.get("tool_call_id") for message in messages)


def _timed(work: Callable[..., object], *arguments: object) -> float:
    start = process_time()
    work(*arguments)
    return process_time() - start
