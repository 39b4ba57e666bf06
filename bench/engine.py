"""How fast the engine is, how its work grows, and what it weighs.

python -m bench.engine            1k, 10k, 100k and 1M segments (about two minutes)
python -m bench.engine --quick    1k and 10k

Every size runs in a process of its own. Times are the medians of a few analyses (roots, mark, score,
plan) of the same heap; `ingest` is the time of all arrivals together.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from bench.engine_case import Case, Result, measure
from bench.tables import duration, print_table, run

SMALL = Case(1_000, 32, 100)
WIDE = Case(10_000, 200, 7)
LARGEST = Case(1_000_000, 32, 2)
GROWTH = (SMALL, Case(10_000, 32, 7), Case(100_000, 32, 3), LARGEST)

MAX_GROWTH = 13.0
HEADER = (
    "segments", "tokens", "ingest", "per add", "roots", "mark", "score", "plan", "total",
    "growth", "heap", "peak",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the benchmark, or one case of it, and print what was found."""
    if arguments[:1] == ["--case"]:
        print(msgspec.json.encode(measure(msgspec.json.decode(arguments[1], type=Case))).decode())
        return 0
    growth = GROWTH[:2] if "--quick" in arguments else GROWTH
    results = [in_own_process(case) for case in (*growth, WIDE)]
    _print_table(results)
    print()
    for line, met in targets(results):
        print(f"{'met    ' if met else 'NOT MET'}  {line}")
    return 0


def in_own_process(case: Case) -> Result:
    """Return what a fresh process measured."""
    command = [sys.executable, "-m", "bench.engine", "--case", msgspec.json.encode(case).decode()]
    print(f"measuring {case.segments:,} segments ...", file=sys.stderr)
    home = Path(__file__).parents[1]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8", cwd=home)
    return msgspec.json.decode(done.stdout, type=Result)


def targets(results: list[Result]) -> Iterator[tuple[str, bool]]:
    """Yield each target in words, with what was measured and whether that meets it."""
    by_case = {result.case: result for result in results}
    for case, judge in _JUDGES:
        if case in by_case:
            yield from judge(by_case[case])
    for smaller, larger in pairwise(result for result in results if result.case in GROWTH):
        ratio = larger.total / smaller.total
        step = f"{smaller.case.segments:,} -> {larger.case.segments:,} segments"
        yield f"{step}: {ratio:.1f} times dearer (at most {MAX_GROWTH:.0f})", ratio <= MAX_GROWTH


def _judge_small(result: Result) -> Iterator[tuple[str, bool]]:
    hundred = 100 * result.all_runs / result.case.runs
    yield (
        f"1,000 segments / 32k tokens: 100 analyses in {hundred:.2f} s (S1 allows 2 s for one)",
        hundred <= 2.0,
    )


def _judge_wide(result: Result) -> Iterator[tuple[str, bool]]:
    took = f"{duration(result.total)} (at most 150 ms)"
    yield f"10,000 segments / 2M tokens: one analysis in {took}", result.total <= 0.150


def _judge_largest(result: Result) -> Iterator[tuple[str, bool]]:
    took, peak = result.total, result.peak_bytes / 1e9
    yield f"1,000,000 segments: one analysis in {took:.1f} s (at most 5 s)", took <= 5.0
    yield f"1,000,000 segments: {peak:.2f} GB at the peak (at most 1.5 GB)", peak <= 1.5


_JUDGES: tuple[tuple[Case, Callable[[Result], Iterator[tuple[str, bool]]]], ...] = (
    (SMALL, _judge_small),
    (WIDE, _judge_wide),
    (LARGEST, _judge_largest),
)


def _print_table(results: list[Result]) -> None:
    rows = [HEADER, *(_row(result, _smaller(result, results)) for result in results)]
    print_table(rows)


def _smaller(result: Result, results: list[Result]) -> Result | None:
    """Return the result for a tenth of the segments, of the same size each."""
    tenth = (result.case.segments // 10, result.case.tokens_each)
    found = (r for r in results if (r.case.segments, r.case.tokens_each) == tenth)
    return next(found, None)


def _row(result: Result, smaller: Result | None) -> tuple[str, ...]:
    phases = (result.roots, result.mark, result.score, result.plan, result.total)
    return (
        f"{result.case.segments:,}",
        f"{result.tokens:,}",
        duration(result.ingest),
        duration(result.ingest / result.case.segments),
        *map(duration, phases),
        "" if smaller is None else f"x{result.total / smaller.total:.1f}",
        _size(result.heap_bytes),
        _size(result.peak_bytes),
    )


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
