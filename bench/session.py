"""What a session adds to an agent's requests, what a collection takes, and what others take.

python -m bench.session            all sizes, compared with LangChain and Microsoft's agent-framework
python -m bench.session --quick    small sizes, without the others

The others are installed into their own environment on the first run (see `bench.peers`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from bench.peers import Peer, PeersMissingError, measure_peers
from bench.session_case import (
    QuarterCounter,
    Requests,
    history,
    measure_collection,
    measure_requests,
    measure_truncation,
)
from bench.tables import duration, print_table, run

GROWTH = (250, 500, 1_000, 2_000, 4_000)
COMPARED = (250, 500, 1_000, 2_000)
COLLECTED = 10_000
STRATEGIES = ("gc_mark_sweep", "gc_budget", "gc_truncate")
MOST_PER_REQUEST = 0.002
MOST_PER_COLLECTION = 0.4
ALONE = "ctxgc gc_truncate, nothing stored"
TRIM = "trim_messages"


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found."""
    quick = "--quick" in arguments
    requests = [measure_requests(size) for size in (GROWTH[:2] if quick else GROWTH)]
    _print_requests(requests)
    size = 500 if quick else COLLECTED
    collections = {name: measure_collection(size, name) for name in STRATEGIES}
    _print_collections(size, collections)
    ratio = _print_comparison(COMPARED[:1] if quick else COMPARED, quick=quick)
    for line, met in (*targets(requests, size, collections), *_beside_trim(ratio)):
        print(f"{'met    ' if met else 'NOT MET'}  {line}")
    return 0


def targets(
    requests: Sequence[Requests], size: int, collections: dict[str, float]
) -> Iterator[tuple[str, bool]]:
    """Yield each target in words, with what was measured and whether that meets it."""
    for found in requests:
        if found.messages == 2_000:
            took = found.beyond_counting
            line = f"2,000 messages: append + messages() add {took * 1e3:.2f} ms (at most 2 ms)"
            yield line, took <= MOST_PER_REQUEST
    for name, took in collections.items():
        line = f"{size:,} messages: {name} collects in {took:.2f} s (at most 0.4 s)"
        yield line, took <= MOST_PER_COLLECTION


def _print_requests(requests: Sequence[Requests]) -> None:
    print("Everything is measured three times; the fastest run counts.\n")
    print("For each request, when nothing is due (append one message, ask for the view):")
    rows: list[tuple[str, ...]] = [
        ("messages", "append", "of it counting", "messages()", "beyond counting", "when due")
    ]
    for found in requests:
        times = (found.append, found.counting, found.view, found.beyond_counting, found.due)
        rows.append((f"{found.messages:,}", *map(duration, times)))
    print_table(rows, names=True)


def _print_collections(size: int, collections: dict[str, float]) -> None:
    print(f"\nOne full collection of {size:,} messages, down to 60%:")
    print_table([(name, duration(took)) for name, took in collections.items()], names=True)


def _beside_trim(ratio: float | None) -> Iterator[tuple[str, bool]]:
    """Yield how gc_truncate compares with LangChain's, if that was measured in this run."""
    if ratio is not None:
        line = f"gc_truncate takes {ratio:.2f} times as long as LangChain's {TRIM} (at most 1)"
        yield line, ratio <= 1


def _print_comparison(sizes: Sequence[int], *, quick: bool) -> float | None:
    """Print what a compaction takes here and elsewhere; return gc_truncate as a ratio to LangChain's."""
    print("\nOne compaction of the same history to 60% of its tokens, all counting alike:")
    header = ("", *(f"{size:,}" for size in sizes), "growth per doubling", "times ours")
    ours = {
        name: [measure_collection(size, name, counter=QuarterCounter()) for size in sizes]
        for name in STRATEGIES
    }
    base = ours["gc_mark_sweep"][-1]
    alone = [measure_truncation(size) for size in sizes]
    rows = [header, *(_row(f"ctxgc {name}", times, base) for name, times in ours.items())]
    rows.append(_row(ALONE, alone, base))
    try:
        peers = {} if quick else measure_peers([history(size) for size in sizes], runs=3)
    except PeersMissingError as missing:
        peers = {}
        rows.append((f"others: not measured ({missing})", *[""] * (len(header) - 1)))
    rows += [_row(_title(name, peer), peer.seconds, base) for name, peer in peers.items()]
    print_table(rows, names=True)
    print()
    return alone[-1] / peers[TRIM].seconds[-1] if TRIM in peers else None


def _title(name: str, peer: Peer) -> str:
    return f"{name} ({peer.version})"


def _row(name: str, times: Sequence[float], base: float) -> tuple[str, ...]:
    growth = " ".join(f"x{later / earlier:.1f}" for earlier, later in pairwise(times))
    return (name, *map(duration, times), growth, f"{times[-1] / base:.1f}")


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
