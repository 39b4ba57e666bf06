"""The indexes over the working tier."""

from __future__ import annotations

from ctxgc.core import Heap
from ctxgc.core.heap import HeapIndexes
from tests.core.build import heap_of, seg


def test_who_leaves_the_working_tier_leaves_every_index_but_supersession() -> None:
    indexes = HeapIndexes()
    segment = seg("a", "parse_header", tags=["x"], bond_id="b", type="message", command="make")
    indexes.enter(segment)
    indexes.mentions.add("a", segment.text)
    indexes.supersession.arrive(segment)
    indexes.touched_old["a"] = None
    indexes.leave(segment)
    assert (list(indexes.keys.keys()), indexes.bonds.groups, indexes.young) == ([], {}, {})
    assert (indexes.mentions.holders("parse_header"), indexes.touched_old) == ((), {})
    assert indexes.supersession.arrive(seg("b", command="make")) == {"a": "re-run"}


def test_the_young_are_those_at_work_that_are_not_tenured() -> None:
    heap = heap_of(seg("a"), seg("b"), seg("c", generation="old"), seg("d", tier="stashed"))
    heap.tenure("a")
    assert list(heap.index.young) == ["b"]
    heap.tenure("d")
    heap.recall("d")
    assert list(heap.index.young) == ["b"]


def test_who_is_stashed_is_known_until_it_is_recalled_or_deleted() -> None:
    heap = heap_of(seg("a"), seg("b"), seg("c"), seg("d", tier="stashed"))
    heap.stash_all(["b", "a"])
    heap.recall("d")
    heap.replace("c", seg("e"))
    heap.remove("a")
    assert heap.index.stashed == {"b": heap.get("b"), "c": heap.get("c")}
    again = Heap()
    again.rebuild(heap)
    assert again.index.stashed == heap.index.stashed


def test_a_stale_segment_is_looked_at_again() -> None:
    heap = heap_of(seg("a", command="make"))
    heap.index.changed.clear()
    heap.add(seg("b", command="make"))
    assert list(heap.index.changed) == ["b", "a"]
