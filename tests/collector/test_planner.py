"""From an analysis to a plan: who is offered, how kindly, and who never is."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.collector import GCEngine
from ctxgc.core import EngineOptions, Heap, PruningPlan
from tests.core.build import BIG, BIG_TOKENS, NO_ROOTS, call, heap_of, result, seg, state
from tests.requirements import requirement


def plan(heap: Heap, free: int | None = None, scope: Any = "major", **options: Any) -> PruningPlan:
    engine = GCEngine(EngineOptions(knobs=NO_ROOTS, **options))
    return engine.plan(state(heap), free_tokens=free, scope=scope)


def actions(made: PruningPlan) -> dict[str, str]:
    return {candidate.segment_id: candidate.action for candidate in made.candidates}


@requirement("S0.sweep.candidates", "S1.mark.sweep-phase")
def test_without_a_need_exactly_the_garbage_leaves() -> None:
    heap = heap_of(seg("kept"), seg("root", pinned=True, references=["kept"]), seg("x"), seg("y"))
    made = plan(heap)
    assert actions(made) == {"x": "stash", "y": "stash"}
    assert (made.target_tokens, made.shortfall, made.heap_version) == (None, 0, heap.version)


@requirement("S0.sweep.reachable-second")
def test_the_reachable_leave_only_while_the_need_is_unmet() -> None:
    heap = heap_of(
        seg("live1", tokens=10),
        seg("live2", tokens=10, type="decision"),
        seg("root", tokens=10, pinned=True, references=["live1", "live2"]),
        seg("garbage", tokens=10, type="decision"),
    )
    assert [list(actions(plan(heap, need))) for need in (5, 10, 11, 25, 99)] == [
        ["garbage"],
        ["garbage"],
        ["garbage", "live1"],
        ["garbage", "live1", "live2"],
        ["garbage", "live1", "live2"],
    ]
    assert plan(heap, 99).shortfall == 69


@requirement("S1.acceptance.pinned")
def test_pins_and_roots_are_in_no_plan_whatever_the_need() -> None:
    heap = heap_of(seg("p", pinned=True), seg("t", task_id="now"), seg("x"))
    engine = GCEngine(EngineOptions(knobs=NO_ROOTS))
    made = engine.plan(state(heap, current_task_id="now"), free_tokens=10**9)
    assert list(actions(made)) == ["x"]
    assert made.shortfall == 10**9 - heap.get("x").tokens


def test_a_bond_with_a_root_in_it_stays_whole() -> None:
    heap = heap_of(call("c", "k"), result("r", "k", pinned=True), seg("x", tokens=3))
    made = plan(heap, 10**6)
    assert actions(made) == {"x": "stash"}


def test_a_parallel_batch_leaves_whole() -> None:
    batch = [call("c1", "m", call_id="k1"), call("c2", "m", call_id="k2")]
    batch += [result("r1", "m", call_id="k1"), result("r2", "m", call_id="k2")]
    made = plan(heap_of(*batch, seg("kept", pinned=True)), 1)
    assert sorted(actions(made)) == ["c1", "c2", "r1", "r2"]
    assert {c.bond for c in made.candidates} == {("c1", "c2", "r1", "r2")}


def test_a_reachable_result_is_evacuated_before_its_bond_is_stashed() -> None:
    heap = heap_of(call("c", "k"), result("r", "k", text=BIG, tokens=None))
    heap.add(seg("root", pinned=True, references=["c"]))
    made = plan(heap, 100)
    assert (actions(made), list(made.stubs)) == ({"r": "evacuate"}, ["r"])
    whole = plan(heap, BIG_TOKENS + 10)
    assert (actions(whole), whole.stubs, whole.shortfall) == ({"c": "stash", "r": "stash"}, {}, 0)


def test_a_result_bonded_to_a_root_may_shrink_but_not_leave() -> None:
    heap = heap_of(call("c", "k", pinned=True), result("r", "k", text=BIG, tokens=None))
    made = plan(heap, 10**6)
    assert actions(made) == {"r": "evacuate"}
    assert made.shortfall == 10**6 - made.total_tokens_freed


@requirement("S0.sweep.stash-over-delete")
def test_the_reachable_are_never_deleted() -> None:
    heap = heap_of(
        seg("live", policy="ephemeral"),
        seg("root", pinned=True, references=["live"], policy="ephemeral"),
        seg("garbage", policy="ephemeral"),
        seg("partial"),
    )
    made = plan(heap, 10**6, delete_policies=("ephemeral",))
    assert actions(made) == {"garbage": "delete", "partial": "stash", "live": "stash"}


def test_nothing_is_deleted_unless_a_policy_says_so() -> None:
    heap = heap_of(*[seg(name, policy=name) for name in ("ephemeral", "partial", "preservable")])
    assert set(actions(plan(heap)).values()) == {"stash"}


def test_a_bond_is_deleted_whole_or_stashed_whole() -> None:
    heap = heap_of(call("c", "k", policy="partial"), result("r", "k", policy="ephemeral"))
    assert actions(plan(heap, delete_policies=("ephemeral",))) == {"c": "stash", "r": "stash"}
    both = plan(heap, delete_policies=("ephemeral", "partial"))
    assert actions(both) == {"c": "delete", "r": "delete"}


@requirement("S0.sweep.compress-verbose", "S0.compression.cold-but-important")
def test_the_reachable_but_verbose_and_cold_are_proposed_for_compression() -> None:
    heap = heap_of(
        seg("verbose", type="note", tokens=800),
        seg("short", type="note", tokens=10),
        seg("root", pinned=True, tokens=900, references=["verbose", "short"]),
        seg("garbage", tokens=900),
    )
    made = plan(heap, cold_steps=3)
    assert [(c.segment_id, c.action, c.freed, c.reason) for c in made.proposals] == [
        (
            "verbose",
            "compress",
            600,
            "cold but important: 800 tokens, reachable, untouched for 3 steps",
        )
    ]
    assert plan(heap, cold_steps=4).proposals == []


def test_with_a_summarizer_the_cold_are_compressed_before_anything_reachable_is_stashed() -> None:
    heap = heap_of(
        seg("verbose", type="note", tokens=800),
        seg("root", pinned=True, references=["verbose"]),
    )
    made = plan(heap, 500, cold_steps=0, can_compress=True)
    assert (actions(made), list(made.stubs)) == ({"verbose": "compress"}, ["verbose"])
    assert actions(plan(heap, 700, cold_steps=0, can_compress=True)) == {"verbose": "stash"}


def test_a_superseded_but_reachable_segment_is_stashed_whole() -> None:
    heap = heap_of(
        seg("old", BIG, command="make", tokens=BIG_TOKENS),
        seg("new", command="make", pinned=True),
        seg("fan", pinned=True, references=["old"]),
    )
    assert actions(plan(heap, 10)) == {"old": "stash"}


def test_a_minor_plan_leaves_the_old_that_nobody_touched_alone() -> None:
    heap = heap_of(
        seg("old", generation="old"), seg("young"), seg("held"),
        seg("holder", generation="old", references=["held"]),
    )  # fmt: skip
    assert actions(plan(heap, scope="minor")) == {"young": "stash"}
    assert list(actions(plan(heap, 10**6, scope="minor"))) == ["young", "held"]
    assert sorted(actions(plan(heap))) == ["held", "holder", "old", "young"]


def test_planning_changes_nothing_and_is_repeatable() -> None:
    heap = heap_of(
        seg("a", BIG), seg("root", pinned=True, references=["a"]), seg("x"), call("c", "k")
    )
    version = heap.version
    plans = [plan(heap, need) for need in (300, 300)]
    assert plans[0] == plans[1]
    assert heap.version == version


@pytest.mark.parametrize("need", [0, 1, 10, 1_000])
def test_candidates_come_in_their_order_with_everything_that_s1_asks_for(need: int) -> None:
    heap = heap_of(*[seg(f"s{n}", tokens=5, command=f"c{n % 3}") for n in range(9)])
    made = plan(heap, need)
    keys = [(c.reachable, not c.superseded, c.score) for c in made.candidates]
    assert keys == sorted(keys)
    assert all(c.reason and c.type == "log" and c.age == 172_800 for c in made.candidates)
