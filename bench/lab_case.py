"""What the default policy takes for its decisions, on the lab's corpus chained to one long session.

Times are processor seconds of this process, without Python's own collector; the store is in memory. A
request is what an agent does between two answers: append what is new, ask for the view. Counting the
tokens of what is new is shown separately: it is the tokenizer's work.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import msgspec

from bench.counting import TimedCounter
from ctxgc import Session
from ctxgc.lab import demo_runs
from ctxgc.lab.corpus.plans import PLANS, Plan, record
from ctxgc.session import RECALL_CALL
from ctxgc.session.collection import PricePass

Json = dict[str, Any]

ROOMY = 10**9
_RUN_TOKENS = 60_000


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request: the length of the history, the seconds it took, and their parts."""

    messages: int
    whole: float
    counting: float
    sparing: float

    @property
    def beyond_counting(self) -> float:
        """The seconds without those of the tokenizer."""
        return self.whole - self.counting


def chained(messages: int) -> list[Json]:
    """Return the corpus as one session of `messages` messages; more runs are made as needed."""
    chain: list[Json] = []
    for number, run in enumerate(_runs()):
        if len(chain) >= messages:
            return chain[:messages]
        said = run if number == 0 else [m for m in run if m["role"] != "system"]
        chain += [_with_own_ids(message, number) for message in said]
    raise AssertionError("there is always another run")


def _runs() -> Iterator[list[Json]]:
    for run in demo_runs():
        yield run.messages
    for number in count(len(PLANS) + 1):
        yield record(Plan(number, number, _RUN_TOKENS))["messages"]


def _with_own_ids(message: Json, run: int) -> Json:
    """Return a copy of a message with call ids that no other run has."""
    own: Json = json.loads(json.dumps(message))
    for call in own.get("tool_calls", ()):
        call["id"] = f"{run}.{call['id']}"
    if "tool_call_id" in own:
        own["tool_call_id"] = f"{run}.{own['tool_call_id']}"
    return own


def measure_decisions(messages: int) -> list[Request]:
    """Play the chain through a session whose window is never full, request by request."""
    chain = chained(messages)
    counter = TimedCounter()
    session = Session(
        ROOMY, store="memory:", recall_call=RECALL_CALL, prices="anthropic-5m", counter=counter
    )
    found: list[Request] = []
    start = process_time()
    with _no_collector(), _timed_sparing() as sparing:
        for place, message in enumerate(chain):
            if message["role"] == "assistant" and place:
                session.messages()
                took = process_time() - start
                parts = {"counting": counter.take(), "sparing": sum(sparing)}
                found.append(Request(messages=place, whole=took, **parts))
                sparing.clear()
                start = process_time()
            session.append(message)
    if not session.gc_history:
        raise AssertionError("nothing was collected, so nothing was measured")
    return found


def measure_window(tokens: int, runs: int = 3) -> float:
    """Return the seconds of one collection in a full window of `tokens` tokens."""
    return median(_collection(tokens) for _ in range(runs))


def _collection(tokens: int) -> float:
    session = Session(
        int(tokens / 0.8), store="memory:", recall_call=RECALL_CALL, plugin="gc_mark_sweep"
    )
    for message in chained(4 * tokens // 100):
        session.append(message)
        if session.usage().total_tokens >= tokens and not session.inspect().view.waiting:
            break
    session.flush()
    with _no_collector():
        start = process_time()
        session.collect()
        took = process_time() - start
    if not session.gc_history[-1].items_collected:
        raise AssertionError("nothing was collected, so nothing was measured")
    return took


def share(times: Sequence[float], of: float) -> float:
    """Return the time that this share of all times does not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(of * len(ordered)))]


@contextmanager
def _timed_sparing() -> Iterator[list[float]]:
    """Record the seconds of each price pass that a session makes."""
    times: list[float] = []

    cut_for_price = PricePass.cut_for_price

    def timed(price_pass: PricePass) -> object:
        start = process_time()
        try:
            return cut_for_price(price_pass)
        finally:
            times.append(process_time() - start)

    with patch.object(PricePass, "cut_for_price", timed):
        yield times


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
