"""One store of one size, filled with the same segments every time, and the time of single calls.

Sessions hold 10k segments of about 60 words each; the words are as unequal in frequency as those of
real texts. A query takes two words of some segment, common ones included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from random import Random
from statistics import median
from typing import Any

import msgspec

from ctxgc.stores import Drop, Put, Store, open_store

PER_SESSION = 10_000

_STEMS = (
    "error", "file", "test", "config", "read", "write", "value", "import", "class", "line", "server",
    "token", "cache", "query",
)  # fmt: skip
_VOCABULARY = [f"{_STEMS[n % 14]}_{n:x}" if n % 3 else f"w{n:x}" for n in range(50_000)]
_WEIGHTS = list(accumulate(1 / (rank + 3) for rank in range(len(_VOCABULARY))))


class Result(msgspec.Struct):
    """Seconds per call, medians; the searches in processor time too, which other work leaves alone."""

    kind: str
    segments: int
    load: float
    open: float
    put: float
    batch: float
    get: float
    search_all: tuple[float, float]
    search_session: tuple[float, float]
    delete: float
    size: int = 0


def text(number: int) -> str:
    """Return the text of a segment; the same number gives the same text."""
    return " ".join(Random(number).choices(_VOCABULARY, cum_weights=_WEIGHTS, k=60))


def segment(number: int) -> dict[str, Any]:
    """Return a segment document."""
    made = {"segment_id": f"k{number}", "text": text(number), "type": "log", "tier": "stashed"}
    return {**made, "created_at": "2026-01-01T00:00:00Z", "tags": ["bench"]}


def question(random: Random, segments: int) -> str:
    """Return two words of some segment."""
    return " ".join(random.sample(text(random.randrange(segments)).split(), 2))


def measure(kind: str, url: str, segments: int, rounds: int) -> Result:
    """Fill a fresh store and time single calls."""
    store, random = open_store(url), Random(1)
    load, _ = _timed(lambda: fill(store, segments))
    store, opened = (store, 0.0) if kind == "memory" else _opened_again(store, url)
    asked = [question(random, segments) for _ in range(rounds)]
    keys = random.sample(range(segments), rounds)
    fresh = [_puts(segments + n, 1) for n in range(rounds)]
    batches = [_puts(segments + rounds + 100 * n, 100) for n in range(10)]
    result = Result(
        kind=kind,
        segments=segments,
        load=load / segments,
        open=opened,
        put=_median(lambda puts: store.commit("bench", puts), fresh)[0],
        batch=_median(lambda puts: store.commit("bench", puts), batches)[0],
        get=_median(lambda n: store.get(session(n), "segments", f"k{n}"), keys)[0],
        search_all=_median(store.search, asked),
        search_session=_median(lambda query: store.search(query, session_id="s0"), asked),
        delete=_median(lambda n: store.commit(session(n), [Drop("segments", f"k{n}")]), keys)[0],
    )
    store.close()
    return result


def fill(store: Store, segments: int) -> None:
    """Put the first segments, a thousand in a commit."""
    for first in range(0, segments, 1_000):
        store.commit(session(first), _puts(first, min(1_000, segments - first)))


def session(number: int) -> str:
    """Return the session of a segment."""
    return f"s{number // PER_SESSION}"


def _opened_again(store: Store, url: str) -> tuple[Store, float]:
    """Return a new handle, and how long closing, opening and the first search took."""
    start = time.perf_counter()
    store.close()
    store = open_store(url)
    store.search("first call", limit=1)
    return store, time.perf_counter() - start


def _puts(first: int, count: int) -> list[Put]:
    return [Put("segments", f"k{n}", segment(n)) for n in range(first, first + count)]


def _median(call: Callable[[Any], object], inputs: list[Any]) -> tuple[float, float]:
    times = [_timed(partial(call, value)) for value in inputs]
    return median(wall for wall, _ in times), median(busy for _, busy in times)


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the clock and of this process."""
    start, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - busy
