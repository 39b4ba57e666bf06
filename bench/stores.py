"""How fast the stores are: put, get, search and delete, at 10k segments and at 1M.

python -m bench.stores                     all stores at 10k, json at 100k, sqlite at 1M: ten minutes, 3 GB
python -m bench.stores --quick             all stores at 1k, to see that it runs
python -m bench.stores sqlite 1000000      one store, one size

Postgres is the server that CTXGC_TEST_POSTGRES names, or one that is started for this. Times are
medians of single calls; a put, a batch and a delete are durable when they return. `open` is closing,
opening again and the first search.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.stores_case import Result, measure
from bench.tables import duration, print_table, run
from tests.stores.server import fresh_database

KINDS = ("memory", "json", "sqlite", "postgres")
CASES = [*((kind, 10_000) for kind in KINDS), ("json", 100_000), ("sqlite", 1_000_000)]
QUICK = [(kind, 1_000) for kind in KINDS]
HEADER = (
    "store", "segments", "load, each", "put", "batch of 100", "get", "search all", "search session",
    "delete", "open", "on disk",
)  # fmt: skip


def in_fresh_place(kind: str, segments: int, rounds: int) -> Result | None:
    """Return what was measured in a new directory or database, or None if there is no server."""
    print(f"measuring {kind} with {segments:,} segments ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            url = stack.enter_context(fresh_database()) if kind == "postgres" else ""
        except pytest.skip.Exception as reason:
            print(f"left out: {reason}", file=sys.stderr)
            return None
        place = "memory:" if kind == "memory" else f"{kind}:{folder}/stash"
        result = measure(kind, url or place, segments, rounds)
        result.size = sum(path.stat().st_size for path in Path(folder).iterdir())
        return result


def main(arguments: list[str]) -> int:
    """Measure what was asked for, and print it."""
    quick = arguments == ["--quick"]
    cases = QUICK if quick else CASES
    if len(arguments) == 2:
        cases = [(arguments[0], int(arguments[1]))]
    measured = [in_fresh_place(kind, count, 5 if quick else 40) for kind, count in cases]
    results = [result for result in measured if result]
    print_table([HEADER, *map(_row, results)], names=True)
    print()
    for large in results:
        for small in results:
            if small.kind == large.kind and small.segments < large.segments:
                print(growth(small, large))
    for result in results:
        if result.kind == "sqlite" and result.segments >= 1_000_000:
            print(target("search over 1M segments", result.search_all, 0.060))
            print(target("search in one session of 10k", result.search_session, 0.010))
    return 0


def growth(small: Result, large: Result) -> str:
    """Return how much slower each call is with more segments."""
    pairs = zip(_calls(small).items(), _calls(large).values(), strict=True)
    ratios = ", ".join(f"{name} x{more / less:.1f}" for (name, less), more in pairs)
    return f"{large.kind}, {large.segments // small.segments} times the segments: {ratios}"


def target(words: str, times: tuple[float, float], most: float) -> str:
    """Return whether a search is fast enough by the clock; with its processor time."""
    wall, busy = times
    verdict = "met    " if wall <= most else "NOT MET"
    spent = f"{duration(wall)}, {duration(busy)} of processor time"
    return f"{verdict}  {words}: {spent} (at most {duration(most)})"


def _calls(result: Result) -> dict[str, float]:
    return {
        "put": result.put, "batch": result.batch, "get": result.get,
        "search all": result.search_all[0], "search session": result.search_session[0],
        "delete": result.delete,
    }  # fmt: skip


def _row(result: Result) -> tuple[str, ...]:
    times = (result.load, *_calls(result).values(), result.open)
    size = f"{result.size / 1e6:,.0f} MB" if result.size else "-"
    return (result.kind, f"{result.segments:,}", *map(duration, times), size)


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
