"""Seeded heaps without Hypothesis, and the bytes of every decision about them, for other processes.

`python -m tests.properties.seeded 30` prints one digest per heap: of its plans, steps, chains and roots.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from random import Random

import msgspec

from ctxgc.collector import GCEngine
from ctxgc.core import ContextSegment, EngineOptions, Heap

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_TYPES = ("message", "code", "log", "log", "note", "decision", "summary")


def seeded_heap(seed: int, size: int = 120) -> Heap:
    """Return the heap of a seed: the same in every process and on every machine."""
    random, heap = Random(seed), Heap()
    for n in range(size):
        heap.add(_segment(random, n))
    return heap


def _segment(random: Random, n: int) -> ContextSegment:
    def maybe(chance: float, *choices: str) -> str | None:
        return random.choice(choices) if random.random() < chance else None

    names = " ".join(f"name_{random.randrange(60)}" for _ in range(random.randrange(1, 80)))
    call = maybe(0.3, f"c{n // 3}")
    return ContextSegment(
        segment_id=f"s{n}",
        text=f"step {n}\n" + names.replace(" name_1", "\nname_1"),
        type=random.choice(_TYPES),
        role=maybe(0.6, "user", "assistant", "tool"),
        created_at=NOW - timedelta(minutes=random.randrange(600)),
        pinned=random.random() < 0.02,
        references=tuple(f"s{random.randrange(n)}" for _ in range(random.randrange(3)) if n),
        file_path=maybe(0.2, "src/a.py", "src/b.py", "src/c.py", "src/d.py"),
        topic_id=maybe(0.2, "t1", "t2", "t3", "t4"),
        tags=tuple(filter(None, (maybe(0.2, "x", "y", "z"),))),
        call_id=call,
        part=random.choice(("tool_call", "tool_result")) if call else None,
    )


def decisions(seed: int) -> Iterator[bytes]:
    """Yield the bytes of all that the engine decides about a seeded heap."""
    heap = seeded_heap(seed)
    engine = GCEngine(
        EngineOptions(
            evacuate_min_tokens=60, promote_after=1, context_limit=6_000, looks=6, batch=20,
            soft_limit_percent=62
        )
    )  # fmt: skip
    analysis = engine.analyze(engine.state(heap, NOW))
    for segment in heap:
        yield msgspec.json.encode(
            (analysis.chain(segment.segment_id), analysis.roots.why(segment.segment_id))
        )
    yield msgspec.json.encode(engine.plan(heap, now=NOW))
    for _ in range(6):
        step = engine.step(heap, now=NOW)
        yield msgspec.json.encode(step.plan if step else None)
    for need, scope in ((300, "minor"), (2_000, "major"), (None, "minor"), (20_000, "major")):
        done = engine.collect(heap, now=NOW, free_tokens=need, scope=scope)
        yield msgspec.json.encode((done.plan, done.replaced, done.tenured))


def main() -> None:
    """Print a digest per heap."""
    for seed in range(int(sys.argv[1])):
        print(sha256(b"\n".join(decisions(seed))).hexdigest())


if __name__ == "__main__":
    main()
