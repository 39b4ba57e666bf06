"""Generations: who is looked at, who is promoted."""

from __future__ import annotations

import pytest

from ctxgc.collector import GCEngine
from ctxgc.core import EngineOptions, age, in_scope
from ctxgc.core.options import PROMOTE_AFTER, checked_scope
from ctxgc.errors import InputError
from tests.core.build import NO_ROOTS, NOW, heap_of, seg


def test_a_minor_collection_looks_at_the_young_and_the_touched_old() -> None:
    heap = heap_of(
        seg("o1", generation="old"),
        seg("y1"),
        seg("o2", "parse_header", generation="old"),
        seg("y2", "parse_header"),
    )
    assert [s.segment_id for s in in_scope(heap, "minor")] == ["y1", "o2", "y2"]
    assert [s.segment_id for s in in_scope(heap, "major")] == ["o1", "y1", "o2", "y2"]


def test_who_survives_often_enough_is_tenured() -> None:
    heap = heap_of(seg("a"), seg("b"))
    heap.survive("a")
    assert age(heap, [heap.get("a"), heap.get("b")], 2) == ["a"]
    assert [(s.generation, s.gc_survival_count) for s in heap] == [("old", 2), ("young", 1)]


def test_ageing_forgets_who_was_touched() -> None:
    heap = heap_of(seg("o", generation="old"))
    heap.touch("o")
    assert age(heap, [heap.get("o")], 1) == []
    assert in_scope(heap, "minor") == []


def test_generation_survivals_and_refcounts_are_kept_by_the_cycle() -> None:
    """Known fault 5: they were never updated anywhere."""
    heap = heap_of(seg("kept", pinned=True), seg("fan", references=["kept"], pinned=True))
    engine = GCEngine(EngineOptions(knobs=NO_ROOTS))
    seen = []
    for _ in range(PROMOTE_AFTER):
        engine.collect(heap, now=NOW)
        kept = heap.get("kept")
        seen.append((kept.gc_survival_count, kept.generation, kept.refcount))
    assert seen == [(1, "young", 1), (2, "young", 1), (3, "old", 1)]


def test_a_step_ages_nobody() -> None:
    heap = heap_of(*[seg(f"s{n}", tokens=10) for n in range(10)])
    engine = GCEngine(EngineOptions(knobs=NO_ROOTS, context_limit=100, batch=1))
    assert engine.step(heap, now=NOW) is not None
    assert {s.gc_survival_count for s in heap} == {0}


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        checked_scope("mayor")  # type: ignore[arg-type]
    assert caught.value.details == {"field": "scope"}
    with pytest.raises(InputError):
        GCEngine().plan(heap_of(seg("a")), now=NOW, scope="mayor")  # type: ignore[arg-type]
