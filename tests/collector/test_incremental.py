"""The incremental step: bounded, above the soft limit only, never a root."""

from __future__ import annotations

from typing import Any

from ctxgc.collector import GCEngine
from ctxgc.collector.engine import sample
from ctxgc.core import EngineOptions, Heap
from tests.core.build import NO_ROOTS, NOW, call, calls, heap_of, result, seg, state
from tests.requirements import requirement


def engine(**options: Any) -> GCEngine:
    return GCEngine(EngineOptions(**{"knobs": NO_ROOTS, "context_limit": 100, **options}))


def tens(count: int, **fields: Any) -> Heap:
    return heap_of(*[seg(f"s{n}", tokens=10, **fields) for n in range(count)])


@requirement("S0.incremental.soft-limit")
def test_a_step_moves_nothing_up_to_the_soft_limit() -> None:
    heap = tens(7)
    assert engine().step(heap, now=NOW) is None
    heap.add(seg("one more", tokens=1))
    done = engine().step(heap, now=NOW)
    assert done is not None
    assert (done.tokens_before, done.tokens_after, done.plan.scope) == (71, 61, "step")
    assert GCEngine(EngineOptions(knobs=NO_ROOTS)).step(tens(99), now=NOW) is None


@requirement("S0.incremental.batch")
def test_a_step_moves_at_most_a_batch() -> None:
    heap = tens(200)
    moved = [engine(batch=5).step(heap, now=NOW) for _ in range(3)]
    assert [len(done.stashed) for done in moved if done] == [5, 5, 5]


@requirement("S0.incremental.rescore-subset")
def test_a_step_looks_at_what_changed_and_at_a_rotating_sample_of_the_rest() -> None:
    heap = tens(10)
    for _ in range(4):
        sample(heap, 3)
    heap.add(seg("new", command="make"))
    heap.add(seg("newer", command="make"))
    looked = [[s.segment_id for s in sample(heap, 3)] for _ in range(3)]
    assert looked == [["new", "newer", "s2", "s3", "s4"], ["s5", "s6", "s7"], ["s8", "s9", "s0"]]


def test_the_sample_passes_over_what_left_and_comes_round_to_what_returned() -> None:
    heap = tens(4)
    sample(heap, 9)
    heap.stash("s1")
    heap.remove("s2")
    assert [s.segment_id for s in sample(heap, 4)] == ["s0", "s3"]
    heap.recall("s1")
    assert [s.segment_id for s in sample(heap, 4)] == ["s0", "s3", "s1"]
    assert list(heap.order) == ["s0", "s3", "s1"]


def test_a_step_never_moves_what_a_root_holds() -> None:
    heap = tens(10, topic_id="t")
    heap.pin("s0")
    assert engine().step(heap, now=NOW) is None


def test_a_step_moves_bonds_whole_though_it_looked_at_one_part() -> None:
    heap = heap_of(
        call("c", "k", tokens=50), result("r", "k", tokens=50), seg("p", pinned=True, tokens=50)
    )
    heap.index.changed.clear()
    done = engine(batch=2).step(heap, now=NOW)
    assert done is not None
    assert sorted(done.stashed) == ["c", "r"]


def test_a_bond_larger_than_a_batch_waits_for_a_collection() -> None:
    heap = heap_of(*[seg(f"s{n}", tokens=50, bond_id="b") for n in range(4)])
    assert engine(batch=3).step(heap, now=NOW) is None
    assert engine(batch=4).step(heap, now=NOW) is not None


def test_what_cannot_be_decided_within_the_budget_stays() -> None:
    heap = tens(50, topic_id="t")
    assert engine(looks=10).step(heap, now=NOW) is None


@requirement("S0.incremental.bounded")
def test_the_work_of_a_step_does_not_grow_with_the_heap() -> None:
    """Counted in function calls, above the soft limit, with links of every kind."""

    def work(size: int) -> int:
        heap = Heap()
        heap.add_all(
            seg(
                f"s{n}", f"parse_header_{n % 5} line {n}", tokens=10, topic_id=f"t{n // 4}", tags=["x"],
                file_path=f"f{n // 8}", access="read", type="message", message_id=f"m{n}", failed=n % 9 == 0,
            )
            for n in range(size)
        )  # fmt: skip
        stepping = GCEngine(EngineOptions(context_limit=100, batch=5, looks=50, strong=("topic",)))
        for _ in range(3):
            stepping.step(heap, now=NOW)
        return calls(lambda: [stepping.step(heap, now=NOW) for _ in range(10)])

    counted = [work(size) for size in (200, 2_000, 10_000)]
    assert max(counted) <= 1.1 * min(counted)


def test_steps_alone_bring_a_heap_of_garbage_under_the_soft_limit() -> None:
    heap = tens(60)
    stepping = engine(batch=5)
    for _ in range(12):
        stepping.step(heap, now=NOW)
    assert heap.ledger.working.tokens == 70
    assert state(heap).heap.ledger.balanced()
