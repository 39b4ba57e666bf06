"""Small builders for the tests of the core, and a counter of work."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

from ctxgc.core import (
    ContextSegment,
    EngineOptions,
    GCState,
    Heap,
    KeepScore,
    PruningCandidate,
    RootKnobs,
    ScoreContext,
)
from ctxgc.core.score import DEFAULT_WEIGHTS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=2)

NO_ROOTS = RootKnobs(
    recent_messages=0,
    recent_user_messages=0,
    decision_window_seconds=0,
    recent_files=0,
    unresolved_errors=0,
    original_request=False,
)
BARE = EngineOptions(knobs=NO_ROOTS)
"""Options under which nothing is a root but what a test makes one."""

BIG = "\n".join(["plain words without a name in them"] * 80)
BIG_TOKENS = (len(BIG) + 3) // 4
TYPES = ("decision", "note", "summary", "code", "message", "log")


def seg(segment_id: str, text: str = "", **fields: Any) -> ContextSegment:
    """Return a log of two days ago, unless told otherwise."""
    fields.setdefault("type", "log")
    fields.setdefault("created_at", LONG_AGO)
    return ContextSegment(segment_id=segment_id, text=text or f"text of {segment_id}", **fields)


def heap_of(*segments: ContextSegment) -> Heap:
    """Return a heap that took these segments in one by one."""
    heap = Heap()
    for segment in segments:
        heap.add(segment)
    return heap


def call(segment_id: str, bond: str, **fields: Any) -> ContextSegment:
    """Return a tool call of ten tokens."""
    usual = {"type": "message", "role": "assistant", "part": "tool_call", "tokens": 10}
    return seg(segment_id, **{**usual, "call_id": bond, "bond_id": bond, **fields})


def result(segment_id: str, bond: str, **fields: Any) -> ContextSegment:
    """Return a tool result of ten tokens."""
    usual = {"type": "log", "role": "tool", "part": "tool_result", "tokens": 10}
    return seg(segment_id, **{**usual, "call_id": bond, "bond_id": bond, **fields})


def state(heap: Heap, **fields: Any) -> GCState:
    """Return the state of a heap at NOW in which nothing is a root by itself."""
    return GCState(heap=heap, now=NOW, **{"knobs": NO_ROOTS, **fields})


def calls(work: Callable[[], object]) -> int:
    """Return how many functions, in Python and in C, a piece of work calls."""
    count = 0

    def count_one(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # Hypothesis is called back by every pass of Python's own collector
    sys.setprofile(count_one)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def cand(segment_id: str, score: float = 0.0, tokens: int = 10, **fields: Any) -> PruningCandidate:
    """Return a candidate without partners, unless told otherwise."""
    usual = {"reason": "a reason", "type": "log", "age": 0.0, "bond": (segment_id,)}
    return PruningCandidate(
        segment_id=segment_id, score=score, tokens=tokens, **{**usual, **fields}
    )


def term(profile: str, name: str, segment: ContextSegment, **fields: Any) -> float:
    """Return one term of a score with a coefficient of one."""
    weights = {name: 1.0} if name in DEFAULT_WEIGHTS[profile] else {}
    context = ScoreContext(now=NOW, **fields)
    return dict(KeepScore(profile, weights).explain(segment, context).terms)[name]


def fresh(**fields: Any) -> ContextSegment:
    """Return a segment made just now."""
    return seg("a", **{"created_at": NOW, **fields})
