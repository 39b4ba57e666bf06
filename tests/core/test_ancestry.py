"""Who holds one segment, found backwards."""

from __future__ import annotations

from ctxgc.core.mark import Ancestry, ancestry
from tests.core.build import call, calls, heap_of, result, seg, state


def test_a_segment_is_held_by_the_root_that_reaches_it_over_links_keys_and_bonds() -> None:
    heap = heap_of(
        seg("root", pinned=True, topic_id="t"),
        seg("mid", topic_id="t"),
        call("c", "k", references=["mid"]),
        result("r", "k"),
        seg("far"),
        seg("free"),
    )
    heap.link("mid", "c")
    heap.link("r", "far")
    found = ancestry(state(heap), heap.get("far"))
    assert (found.verdict, found.chain) == ("held", ("root", "mid", "c", "r", "far"))
    assert ancestry(state(heap), heap.get("root")) == Ancestry("held", ("root",), 0)
    assert ancestry(state(heap), heap.get("free")) == Ancestry("free", (), 0)


def test_cycles_end() -> None:
    heap = heap_of(seg("a"), seg("b", references=["a"]))
    heap.link("a", "b")
    assert ancestry(state(heap), heap.get("a")).verdict == "free"


def test_a_stashed_holder_holds_nobody() -> None:
    heap = heap_of(seg("a"), seg("b", references=["a"], pinned=True))
    heap.stash("b")
    assert ancestry(state(heap), heap.get("a")).verdict == "free"


def test_a_superseded_segment_is_not_held_by_a_shared_key() -> None:
    heap = heap_of(
        seg("old", file_path="f", access="read"),
        seg("new", file_path="f", access="read", pinned=True),
    )
    assert ancestry(state(heap), heap.get("old")).verdict == "free"


def test_beyond_its_budget_it_says_that_it_does_not_know() -> None:
    heap = heap_of(*[seg(f"s{n}", topic_id="t") for n in range(50)])
    assert ancestry(state(heap), heap.get("s0"), budget=10) == Ancestry("unknown", (), 11)


def test_the_work_is_bounded_by_the_budget_in_any_heap() -> None:
    def work(size: int) -> int:
        heap = heap_of(*[seg(f"s{n}", topic_id="t", bond_id="b") for n in range(size)])
        return calls(lambda: ancestry(state(heap), heap.get("s0"), budget=100))

    assert work(200) == work(4_000)
