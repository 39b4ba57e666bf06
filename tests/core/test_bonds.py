"""Bonds: what lives and dies together, and which calls are still open."""

from __future__ import annotations

from ctxgc.core.links import Bonds, bond_of
from tests.core.build import call, heap_of, result, seg


def test_a_bond_is_named_by_the_given_id_else_by_the_call() -> None:
    assert [bond_of(s) for s in (seg("a"), seg("b", call_id="k"), seg("c", call_id="k", bond_id="m"))] == [
        None,
        "k",
        "m",
    ]  # fmt: skip


def test_a_parallel_batch_is_one_bond() -> None:
    batch = [call("c1", "m", call_id="k1"), call("c2", "m", call_id="k2")]
    batch += [result("r1", "m", call_id="k1"), result("r2", "m", call_id="k2"), seg("alone")]
    heap = heap_of(*batch)
    assert {s.segment_id: heap.bonds.group(s) for s in heap} == {
        **dict.fromkeys(("c1", "c2", "r1", "r2"), ("c1", "c2", "r1", "r2")),
        "alone": ("alone",),
    }


def test_a_call_is_open_until_its_result_is_there() -> None:
    heap = heap_of(call("c1", "m", call_id="k1"), call("c2", "m", call_id="k2"))
    heap.add(result("r1", "m", call_id="k1"))
    assert heap.bonds.open_calls() == ("c2",)
    assert [heap.bonds.is_open(heap.get(name)) for name in ("c1", "c2", "r1")] == [
        False,
        True,
        False,
    ]


def test_a_call_id_used_again_in_another_bond_is_another_call() -> None:
    heap = heap_of(call("c1", "m1", call_id="k"), result("r1", "m1", call_id="k"))
    heap.add(call("c2", "m2", call_id="k"))
    assert heap.bonds.open_calls() == ("c2",)
    assert heap.bonds.group(heap.get("c1")) == ("c1", "r1")


def test_a_bond_that_is_emptied_is_forgotten() -> None:
    bonds, one = Bonds(), call("c", "k")
    bonds.add(one)
    bonds.discard(one)
    bonds.discard(one)
    assert (bonds.groups, bonds.open_calls()) == ({}, ())


def test_an_open_call_is_open_again_after_stash_and_recall() -> None:
    heap = heap_of(call("c", "k"))
    heap.stash("c")
    assert heap.bonds.open_calls() == ()
    heap.recall("c")
    assert heap.bonds.open_calls() == ("c",)


def test_a_stub_of_a_result_keeps_its_call_answered() -> None:
    heap = heap_of(call("c", "k"), result("r", "k"))
    heap.replace("r", result("r.stub", "k", derived_from="r"))
    assert heap.bonds.open_calls() == ()
    assert heap.bonds.group(heap.get("c")) == ("c", "r.stub")
