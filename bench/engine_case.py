"""One size of the engine benchmark, measured in its own process so that memory is clean.

Python's cycle collector is off while the heap fills, and what is there then is frozen. Segments form no
cycles of Python objects, so it would find nothing, but it would traverse all of them again each time the
heap has grown by a quarter. A host with a large heap should do the same (`gc.freeze()`).

Times are processor seconds of this process, so that other load hardly counts. The engine neither waits
nor uses a second core, so on an idle machine they equal wall time. Between two analyses an agent talks
to its model for seconds, so each one starts with cold caches here.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import TypeVar

import msgspec

from bench.workload import moment, segments
from ctxgc.collector import GCEngine, Planner
from ctxgc.core import GCState, Heap
from ctxgc.core.mark import mark_all
from ctxgc.core.roots import compute_roots

T = TypeVar("T")

FREED_SHARE = 1 / 3
"""What a collection frees that starts at 90% of the window and lands at 60%: the engine's defaults."""


class Case(msgspec.Struct, frozen=True):
    """How large a heap, of how large segments, analysed how often."""

    segments: int
    tokens_each: int
    runs: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds per phase (the median of the runs), bytes, and what was found."""

    case: Case
    tokens: int
    ingest: float
    roots: float
    mark: float
    score: float
    plan: float
    total: float
    all_runs: float
    reached: int
    leaving: int
    heap_bytes: int
    peak_bytes: int


class Lap(msgspec.Struct, frozen=True):
    """The seconds of one analysis, and what it found."""

    roots: float
    mark: float
    score: float
    plan: float
    reached: int
    leaving: int

    @property
    def total(self) -> float:
        """Seconds from the roots to the finished plan."""
        return self.roots + self.mark + self.score + self.plan


def measure(case: Case) -> Result:
    """Fill a heap and analyse it."""
    before = _resident()
    heap, seconds = _fill(case)
    held = _resident() - before
    engine = GCEngine()
    state = engine.state(heap, moment(case.segments))
    laps = [_analyse(engine, state) for _ in range(case.runs)]
    return Result(
        case=case,
        tokens=heap.ledger.working.tokens,
        ingest=seconds,
        roots=median(lap.roots for lap in laps),
        mark=median(lap.mark for lap in laps),
        score=median(lap.score for lap in laps),
        plan=median(lap.plan for lap in laps),
        total=median(lap.total for lap in laps),
        all_runs=sum(lap.total for lap in laps),
        reached=laps[0].reached,
        leaving=laps[0].leaving,
        heap_bytes=held,
        peak_bytes=_peak(),
    )


def _fill(case: Case) -> tuple[Heap, float]:
    """Take in one segment after the other; their making is not part of the time."""
    heap, spent = Heap(), 0.0
    gc.disable()
    for segment in segments(case.segments, case.tokens_each):
        start = process_time()
        heap.add(segment)
        spent += process_time() - start
    gc.enable()
    gc.freeze()
    return heap, spent


def _analyse(engine: GCEngine, state: GCState) -> Lap:
    """Time one analysis and plan, then its first two phases again: scoring is the rest of it."""
    need = int(state.heap.ledger.working.tokens * FREED_SHARE)
    analysis, analysed = _timed(lambda: engine.analyze(state))
    plan, planned = _timed(lambda: Planner(analysis, engine.options).plan(need), cold=False)
    roots, found = _timed(lambda: compute_roots(state))
    marks, marked = _timed(lambda: mark_all(state.heap, roots, engine.options.strong), cold=False)
    score = max(0.0, analysed - found - marked)
    return Lap(found, marked, score, planned, len(marks), len(plan))


def _timed(work: Callable[[], T], *, cold: bool = True) -> tuple[T, float]:
    if cold:
        _cool_caches()
    start = process_time()
    return work(), process_time() - start


def _cool_caches() -> int:
    """Write more than the processor's caches hold."""
    return len(b"\1" * (64 << 20))


def _resident() -> int:
    """Return the bytes that this process holds now; the peak where the system does not say."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return _peak()
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
