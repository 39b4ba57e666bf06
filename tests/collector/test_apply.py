"""Applying a plan: all of it or nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from ctxgc.collector import GCEngine
from ctxgc.core import ContextSegment, EngineOptions, Heap
from ctxgc.core.codec import heap_from_json, heap_to_json
from ctxgc.errors import StalePlanError
from tests.core.build import (
    BARE,
    BIG,
    BIG_TOKENS,
    LONG_AGO,
    NO_ROOTS,
    NOW,
    call,
    heap_of,
    result,
    seg,
    state,
)
from tests.requirements import requirement

COMPRESSING = GCEngine(EngineOptions(knobs=NO_ROOTS, can_compress=True, cold_steps=0))


def verbose_heap() -> Heap:
    """A heap whose only way to shrink is to compress one note."""
    return heap_of(
        seg(
            "note", BIG, type="note", file_path="src/a.py", line_range=(3, 9), tags=["bug-1"],
            last_touched_at=LONG_AGO + timedelta(hours=1), topic_id="t", task_id="k",
        ),
        seg("root", pinned=True, references=["note"]),
    )  # fmt: skip


def view(heap: Heap) -> list[str]:
    return [segment.segment_id for segment in heap.working()]


def test_a_collection_reports_what_it_did() -> None:
    heap = heap_of(
        seg("gone", tokens=30, policy="ephemeral"),
        seg("moved", tokens=20),
        seg("kept", tokens=5, pinned=True),
    )
    engine = GCEngine(
        EngineOptions(knobs=NO_ROOTS, delete_policies=("ephemeral",), promote_after=1)
    )
    made = engine.plan(heap, now=NOW)
    done = engine.apply(made, heap)
    assert done.plan is made
    assert (done.tokens_before, done.tokens_after, done.tokens_freed) == (55, 5, 50)
    assert (done.stashed, done.deleted, done.replaced, done.tenured) == (
        ["moved"],
        ["gone"],
        {},
        ["kept"],
    )
    assert (view(heap), "gone" in heap, heap.get("moved").tier) == (["kept"], False, "stashed")
    assert heap.ledger.balanced()


def test_an_evacuated_result_leaves_its_stub_in_the_bond_and_can_come_back() -> None:
    heap = heap_of(call("c", "k"), result("r", "k", text=BIG, tokens=None))
    heap.add(seg("root", pinned=True, references=["c"]))
    done = GCEngine(BARE).collect(heap, now=NOW, free_tokens=100)
    stub = done.replaced["r"]
    assert view(heap) == ["c", stub, "root"]
    assert heap.bonds.group(heap.get("c")) == ("c", stub)
    assert (heap.get(stub).derived_from, heap.get(stub).call_id) == ("r", "k")
    assert f'context_recall(handle="{"r"}")' in heap.get(stub).text
    heap.recall("r")
    assert (view(heap), heap.get("r").text) == (["c", "r", "root"], BIG)


def test_a_stub_stays_reachable_for_whoever_referred_to_its_original() -> None:
    heap = heap_of(seg("log", BIG), seg("root", pinned=True, references=["log"]))
    engine = GCEngine(BARE)
    stub = engine.collect(heap, now=NOW, free_tokens=100).replaced["log"]
    assert engine.plan(heap, now=NOW).candidates == []
    assert view(heap) == [stub, "root"]


def test_evacuating_again_after_a_recall_makes_another_stub() -> None:
    heap = heap_of(seg("log", BIG), seg("root", pinned=True, references=["log"]))
    engine = GCEngine(BARE)
    first = engine.collect(heap, now=NOW, free_tokens=100).replaced["log"]
    heap.recall("log")
    second = engine.collect(heap, now=NOW, free_tokens=100).replaced["log"]
    assert first != second
    assert view(heap) == [second, "root"]


@requirement("S0.compression.keeps-metadata", "S0.compression.normal-segment")
def test_a_compressed_segment_is_a_normal_one_that_costs_less_and_keeps_its_metadata() -> None:
    heap = verbose_heap()
    done = COMPRESSING.collect(heap, now=NOW, free_tokens=500, summarize=lambda _: "in short")
    original, summary = heap.get("note"), heap.get(done.replaced["note"])
    assert (summary.text, summary.type, summary.tokens) == ("in short", "summary", 2)
    kept = (
        "file_path", "line_range", "created_at", "last_touched_at", "created_step",
        "last_touched_step", "tags", "topic_id", "task_id", "position", "generation",
    )  # fmt: skip
    assert [getattr(summary, f) for f in kept] == [getattr(original, f) for f in kept]
    assert (original.tier, original.text, summary.derived_from) == ("stashed", BIG, "note")
    again = GCEngine(BARE).plan(state(heap), free_tokens=1)
    assert [c.segment_id for c in again.candidates] == [summary.segment_id]


@pytest.mark.parametrize("summary", [None, "", "far too long " * 300])
def test_without_a_fitting_summary_a_stub_stands_in(summary: str | None) -> None:
    heap = verbose_heap()
    made = COMPRESSING.plan(heap, now=NOW, free_tokens=500)
    done = COMPRESSING.apply(made, heap, summarize=lambda _: summary)
    stub = heap.get(done.replaced["note"])
    assert (stub.text, stub.type) == (made.stubs["note"], "note")
    assert done.tokens_freed >= made.total_tokens_freed


def test_a_note_that_is_evacuated_does_not_become_a_message() -> None:
    heap = heap_of(seg("log", BIG), seg("root", pinned=True, references=["log"]))
    GCEngine(BARE).collect(heap, now=NOW, free_tokens=100)
    assert list(heap.root_index.last_messages(9)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda heap: heap.pin("a"),
        lambda heap: heap.add(seg("new")),
        lambda heap: heap.touch("a"),
        lambda heap: heap.link("b", "a"),
        lambda heap: heap.stash("b"),
        lambda heap: heap.open_file("f"),
        lambda heap: heap.remove("b"),
    ],
)
def test_a_plan_is_refused_once_the_heap_has_changed(change: object) -> None:
    heap = heap_of(seg("a"), seg("b"))
    engine = GCEngine(BARE)
    made = engine.plan(heap, now=NOW)
    change(heap)  # type: ignore[operator]
    before = heap_to_json(heap)
    with pytest.raises(StalePlanError):
        engine.apply(made, heap)
    assert heap_to_json(heap) == before


def test_a_plan_is_refused_the_second_time() -> None:
    heap = heap_of(seg("a"), seg("b"))
    engine = GCEngine(BARE)
    made = engine.plan(heap, now=NOW)
    engine.apply(made, heap)
    with pytest.raises(StalePlanError):
        engine.apply(made, heap)


def test_a_plan_without_a_heap_or_of_another_one_is_refused() -> None:
    engine, heap, other = GCEngine(BARE), heap_of(seg("a")), heap_of(seg("z"))
    with pytest.raises(StalePlanError):
        engine.apply(engine.generate_pruning_plan([], 0), heap)
    with pytest.raises(StalePlanError):
        engine.apply(engine.plan(other, now=NOW), heap)


def test_a_plan_survives_saving_and_reading_the_heap() -> None:
    heap = heap_of(seg("a"), seg("b"))
    made = GCEngine(BARE).plan(heap, now=NOW)
    again = heap_from_json(heap_to_json(heap))
    assert GCEngine(BARE).apply(made, again).stashed == ["a", "b"]


def test_a_summarizer_that_fails_changes_nothing() -> None:
    heap = verbose_heap()
    heap.add(seg("garbage"))
    before = heap_to_json(heap)

    def fail(_segment: ContextSegment) -> str:
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError):
        COMPRESSING.collect(heap, now=NOW, free_tokens=500, summarize=fail)
    assert heap_to_json(heap) == before


def test_a_counter_that_fails_changes_nothing() -> None:
    heap = verbose_heap()
    heap.add(seg("garbage"))
    made = COMPRESSING.plan(heap, now=NOW, free_tokens=500)
    before = heap_to_json(heap)

    def fail(_text: str) -> int:
        raise RuntimeError("no counter")

    heap.count = fail
    with pytest.raises(RuntimeError):
        COMPRESSING.apply(made, heap, summarize=lambda _: "in short")
    assert heap_to_json(heap) == before


def test_a_name_taken_by_a_caller_is_no_obstacle_for_a_stub() -> None:
    heap = verbose_heap()
    heap.add(seg(f"note.stub{heap.version + 1}", pinned=True))
    done = COMPRESSING.collect(heap, now=NOW, free_tokens=500, summarize=lambda _: "in short")
    assert heap.get(done.replaced["note"]).text == "in short"


def test_collecting_twice_is_collecting_once() -> None:
    heap = heap_of(*[seg(f"s{n}", tokens=10) for n in range(20)], seg("p", pinned=True, tokens=5))
    engine = GCEngine(EngineOptions(knobs=NO_ROOTS, context_limit=200))
    first = engine.collect(heap, now=NOW)
    second = engine.collect(heap, now=NOW)
    assert (first.tokens_after, second.tokens_freed, second.stashed) == (115, 0, [])


def test_tokens_never_rise_by_a_collection() -> None:
    for need in (None, 0, 1, 50, BIG_TOKENS, 10**6):
        heap = verbose_heap()
        heap.add_all([seg("log", BIG, topic_id="t"), seg("tiny", "x", topic_id="t")])
        made = COMPRESSING.plan(heap, now=NOW, free_tokens=need)
        done = COMPRESSING.apply(made, heap)
        assert done.tokens_after <= made.tokens_after <= done.tokens_before


def test_the_new_are_not_aged_by_the_collection_that_made_them() -> None:
    heap = verbose_heap()
    done = COMPRESSING.collect(heap, now=NOW, free_tokens=500, summarize=lambda _: "in short")
    counts = {s.segment_id: s.gc_survival_count for s in heap.working()}
    assert counts == {done.replaced["note"]: 0, "root": 1}


def test_a_plan_with_an_action_nobody_planned_is_not_silently_something_else() -> None:
    made = GCEngine(BARE).plan(heap_of(seg("a")), now=NOW)
    with pytest.raises(ValueError, match="action 'burn' is not known"):
        replace(made.candidates[0], action="burn")  # type: ignore[arg-type]
