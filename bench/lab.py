"""How long the default policy decides before a request, by the length of the history.

python -m bench.lab            a session of 4,000 messages, and a full window of 100,000 tokens
python -m bench.lab --quick    400 messages, 10,000 tokens
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from bench.lab_case import Request, measure_decisions, measure_window, share
from bench.tables import duration, print_table, run

MESSAGES = 4_000
WINDOW = 100_000
BANDS = 8
MOST_PER_REQUEST = 0.010
MOST_PER_COLLECTION = 0.2


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found."""
    quick = "--quick" in arguments
    requests = measure_decisions(400 if quick else MESSAGES)
    print("Before each request, in a window that is never full (p50 / p99):")
    print_table(list(_rows(requests)))
    tokens = 10_000 if quick else WINDOW
    collection = measure_window(tokens, runs=1 if quick else 3)
    print(f"\nOne collection of a full window of {tokens:,} tokens: {duration(collection)}")
    for line, met in targets(requests, tokens, collection):
        print(f"{'met    ' if met else 'NOT MET'}  {line}")
    return 0


def targets(
    requests: Sequence[Request], tokens: int, collection: float
) -> Iterator[tuple[str, bool]]:
    """Yield each target in words, with what was measured and whether that meets it."""
    took = share([request.beyond_counting for request in requests], 0.99)
    size = f"{requests[-1].messages:,} messages"
    line = f"{size}: p99 of a request, beyond counting, {duration(took)} (at most 10 ms)"
    yield line, took <= MOST_PER_REQUEST
    line = f"{tokens:,} tokens: a collection takes {duration(collection)} (at most 200 ms)"
    yield line, collection <= MOST_PER_COLLECTION


def _rows(requests: Sequence[Request]) -> Iterator[tuple[str, ...]]:
    yield ("messages up to", "requests", "append + messages()", "beyond counting", "of it sparing")
    width = requests[-1].messages / BANDS
    for number in range(BANDS):
        low, high = number * width, (number + 1) * width
        band = [r for r in requests if low < r.messages <= high]
        if band:
            times = (
                [r.whole for r in band],
                [r.beyond_counting for r in band],
                [r.sparing for r in band],
            )
            yield (f"{high:,.0f}", f"{len(band):,}", *map(_both, times))


def _both(times: Sequence[float]) -> str:
    return f"{duration(share(times, 0.5))} / {duration(share(times, 0.99))}"


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
