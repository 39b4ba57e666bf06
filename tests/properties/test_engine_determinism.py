"""Same heap, same clock, same decisions: in any process, whatever its hash seed, and after a reload."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import GCEngine
from ctxgc.core import EngineOptions
from ctxgc.core.codec import heap_from_json, heap_to_json
from tests.properties import heaps, seeded

ROOT = Path(__file__).parents[2]


def _digests(hash_seed: str, heaps_wanted: int) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.properties.seeded", str(heaps_wanted)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split()


def test_decisions_are_the_same_bytes_under_three_hash_seeds() -> None:
    first = _digests("0", 30)
    assert len(set(first)) == 30
    assert _digests("1", 30) == first
    assert _digests("424242", 30) == first


def test_the_seeded_heaps_make_the_engine_decide_something() -> None:
    engine = GCEngine(EngineOptions(evacuate_min_tokens=60, promote_after=1))
    plans = [
        engine.plan(seeded.seeded_heap(seed), now=seeded.NOW, free_tokens=3_000)
        for seed in range(5)
    ]
    assert all(plan.stash_segments and plan.candidates for plan in plans)
    assert any(plan.evacuate_segments for plan in plans)


@given(
    heaps.segment_lists(),
    heaps.options(context_limit=200, batch=3, looks=4),
    st.one_of(st.none(), st.integers(0, 400)),
)
def test_a_heap_that_was_saved_and_loaded_is_decided_about_in_the_same_way(
    segments: list, options: EngineOptions, need: int | None
) -> None:
    engine, heap = GCEngine(options), heaps.heap_of(segments)
    again = heap_from_json(heap_to_json(heap))
    for scope in ("minor", "major"):
        assert engine.plan(heap, now=heaps.NOW, free_tokens=need, scope=scope) == engine.plan(
            again, now=heaps.NOW, free_tokens=need, scope=scope
        )
