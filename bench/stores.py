"""How fast the stores are: put, get, search and delete, at 10k segments and at 1M.

python -m bench.stores                     10k in every store, 100k in json (about a minute)
python -m bench.stores --large             and 1M in sqlite (about ten minutes and 2 GB on the disk)
python -m bench.stores sqlite 1000000      one store, one size

Postgres is measured where CTXGC_TEST_POSTGRES names a server. Sessions hold 10k segments of about
60 words each; the words are as unequal in frequency as those of real texts. A query takes two words
of some segment, common ones included. Times are medians of single calls; a put, a batch and a delete
are durable when they return. `open` is closing, opening again and the first search.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import msgspec

from bench.tables import duration, print_table
from ctxgc.stores import Drop, Put, Store, open_store

PER_SESSION = 10_000
HEADER = (
    "store", "segments", "load, each", "put", "batch of 100", "get", "search all", "search session",
    "delete", "open", "on disk",
)  # fmt: skip

_STEMS = [
    "error",
    "file",
    "test",
    "config",
    "read",
    "write",
    "value",
    "import",
    "class",
    "line",
    "server",
    "token",
    "cache",
    "query",
]
_VOCABULARY = [f"{_STEMS[n % 14]}_{n:x}" if n % 3 else f"w{n:x}" for n in range(50_000)]
_WEIGHTS = list(accumulate(1 / (rank + 3) for rank in range(len(_VOCABULARY))))


class Result(msgspec.Struct):
    """Seconds per call, and bytes."""

    kind: str
    segments: int
    load: float
    put: float
    batch: float
    get: float
    search_all: float
    search_session: float
    delete: float
    open: float
    size: int


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


def measure(kind: str, url: str, segments: int, rounds: int = 40) -> Result:
    """Fill a fresh store and time single calls."""
    store, random = open_store(url), Random(1)
    load = _seconds(lambda: _fill(store, segments))
    opened = time.perf_counter()
    if kind != "memory":
        store.close()
        store = open_store(url)
    store.search("first call", limit=1)
    opened = time.perf_counter() - opened
    fresh = iter(range(segments, segments + 200_000))
    asked = [question(random, segments) for _ in range(rounds)]

    def put(count: int) -> Callable[[], object]:
        puts = [
            Put("segments", f"k{n}", segment(n)) for n, _ in zip(fresh, range(count), strict=False)
        ]
        return lambda: store.commit("bench", puts)

    def each(calls: list[Callable[[], object]]) -> float:
        return median(_seconds(call) for call in calls)

    keys = [random.randrange(segments) for _ in range(rounds)]
    result = Result(
        kind=kind,
        segments=segments,
        load=load / segments,
        put=each([put(1) for _ in range(rounds)]),
        batch=each([put(100) for _ in range(10)]),
        get=each([lambda n=n: store.get(_session(n), "segments", f"k{n}") for n in keys]),
        search_all=each([lambda q=q: store.search(q) for q in asked]),
        search_session=each([lambda q=q: store.search(q, session_id="s0") for q in asked]),
        delete=each(
            [lambda n=n: store.commit(_session(n), [Drop("segments", f"k{n}")]) for n in keys]
        ),
        open=opened,
        size=0,
    )
    store.close()
    return result


def _fill(store: Store, segments: int) -> None:
    for first in range(0, segments, 1_000):
        puts = [Put("segments", f"k{n}", segment(n)) for n in range(first, first + 1_000)]
        store.commit(_session(first), puts)


def _session(number: int) -> str:
    return f"s{number // PER_SESSION}"


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_fresh_place(kind: str, segments: int) -> Result | None:
    """Return what was measured in a new directory, or None if there is no server."""
    with tempfile.TemporaryDirectory() as folder:
        server = os.environ.get("CTXGC_TEST_POSTGRES", "")
        urls = {"memory": "memory:", "postgres": server}
        url = urls.get(kind, f"{kind}:{folder}/stash")
        if not url:
            return None
        print(f"measuring {kind} with {segments:,} segments ...", file=sys.stderr)
        result = measure(kind, url, segments)
        result.size = sum(path.stat().st_size for path in Path(folder).iterdir())
        return result


def main(arguments: list[str]) -> int:
    """Measure what was asked for, and print it."""
    cases = [
        ("memory", 10_000),
        ("json", 10_000),
        ("json", 100_000),
        ("sqlite", 10_000),
        ("postgres", 10_000),
    ]
    if "--large" in arguments:
        cases.append(("sqlite", 1_000_000))
    elif len(arguments) == 2:
        cases = [(arguments[0], int(arguments[1]))]
    results = [found for kind, count in cases if (found := in_fresh_place(kind, count))]
    print_table([HEADER, *map(_row, results)], names=True)
    for result in results:
        if result.kind == "sqlite" and result.segments >= 1_000_000:
            _target("search over 1M segments within 60 ms", result.search_all <= 0.060)
            _target("search in a session of 10k within 10 ms", result.search_session <= 0.010)
    return 0


def _target(words: str, met: bool) -> None:
    print(f"{'met    ' if met else 'NOT MET'}  {words}")


def _row(result: Result) -> tuple[str, ...]:
    times = (
        result.load, result.put, result.batch, result.get, result.search_all, result.search_session,
        result.delete, result.open,
    )  # fmt: skip
    size = f"{result.size / 1e6:,.0f} MB" if result.size else "-"
    return (result.kind, f"{result.segments:,}", *map(duration, times), size)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
