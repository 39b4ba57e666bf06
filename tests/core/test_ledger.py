"""The token ledger."""

from __future__ import annotations

from ctxgc.core import Amount, Heap, Ledger
from ctxgc.core.heap import DIMENSIONS
from tests.core.build import calls, heap_of, seg


def test_amounts_add_up_by_segments_and_by_tokens() -> None:
    assert Amount(1, 5) + Amount(2, 7) == Amount(3, 12)


def test_the_ledger_answers_by_tier_and_by_every_dimension() -> None:
    heap = heap_of(
        seg("a", tokens=5, task_id="t1", policy="ephemeral", source="plugin"),
        seg("b", tokens=7, type="note", task_id="t1"),
        seg("c", tokens=11, type="note"),
    )
    heap.stash("b")
    ledger = heap.ledger
    assert {dimension: ledger.by(dimension) for dimension in DIMENSIONS} == {
        "type": {"log": Amount(1, 5), "note": Amount(1, 11)},
        "task": {"t1": Amount(1, 5), None: Amount(1, 11)},
        "policy": {"ephemeral": Amount(1, 5), "partial": Amount(1, 11)},
        "source": {"plugin": Amount(1, 5), "conversation": Amount(1, 11)},
    }
    assert ledger.amount("type", "note", "stashed") == Amount(1, 7)
    assert ledger.amount("task", "nobody") == Amount()
    assert (ledger.ingested, ledger.working, ledger.stashed) == (
        Amount(3, 23),
        Amount(2, 16),
        Amount(1, 7),
    )


def test_deletions_of_a_former_life_are_carried_over() -> None:
    ledger = Ledger()
    ledger.restate_deleted(Amount(2, 30))
    assert (ledger.ingested, ledger.deleted, ledger.balanced()) == (
        Amount(2, 30),
        Amount(2, 30),
        True,
    )


def test_an_answer_costs_the_same_in_any_heap() -> None:
    def work(size: int) -> int:
        heap = Heap()
        heap.add_all(seg(f"s{n}", tokens=1) for n in range(size))
        return calls(lambda: (heap.ledger.working, heap.ledger.amount("type", "log")))

    assert work(10) == work(3_000)
