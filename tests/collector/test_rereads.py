"""A file that is read again and again: the newest view stays, the older ones do not live by their calls."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ctxgc.collector import GCEngine, Segmenter
from ctxgc.core import ContextSegment, EngineOptions, Evidence, Heap
from ctxgc.wire import parse
from tests.core.build import BARE, BIG, NOW, call, heap_of, result, seg, state
from tests.strategies.build import COUNTER, rows, step

FILES, READS = 5, 40
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def forty_reads() -> Heap:
    """Forty reads of five files, all of them recent ones."""
    heap = Heap(COUNTER.count)
    segmenter = Segmenter(COUNTER, heap, lambda: NOON)
    messages = [{"role": "user", "content": "Fix the pool."}]
    for number in range(READS):
        path = f"src/pool_{number % FILES}.py"
        messages += step(number, rows(f"view{number}", 60), path=path)
    for place, message in enumerate(messages):
        segmenter.take(parse(message, "openai", f"m{place}"))
    return heap


def older_views(heap: Heap) -> list[str]:
    return [s.segment_id for s in heap if s.superseded_by is not None]


def half_window(heap: Heap) -> GCEngine:
    """An engine whose window the heap fills twice."""
    return GCEngine(EngineOptions(context_limit=heap.ledger.working.tokens // 2))


def test_forty_reads_of_five_files_come_down_to_the_target_and_every_call_keeps_an_answer() -> None:
    heap = forty_reads()
    engine, older = half_window(heap), older_views(heap)
    assert len(older) == READS - FILES
    plan = engine.plan(heap, now=NOON)
    assert (plan.shortfall, plan.stash_segments, plan.delete_segments) == (0, [], [])
    assert set(plan.evacuate_segments) <= set(older)
    first = plan.candidates[0]
    assert (first.reason, first.reachable) == (
        "superseded (read again) by the read of src/pool_0.py",
        False,
    )
    assert plan.stubs[first.segment_id] == (
        f"[ctxgc: read of src/pool_0.py moved out, {first.tokens} tokens: superseded (read again). "
        f'To see it again: context_recall(handle="{first.segment_id}")]'
    )
    done = engine.apply(plan, heap)
    target = engine.options.limit(engine.options.target_percent)
    assert target is not None
    assert done.tokens_after <= target
    assert heap.bonds.open_calls() == ()


def test_without_a_need_all_older_views_leave_and_a_second_time_nothing_does() -> None:
    heap = forty_reads()
    # Those that the last messages show are roots.
    recent = [s.segment_id for s in heap.working()][-10:]
    older = [i for i in older_views(heap) if i not in recent]
    engine = GCEngine()
    done = engine.collect(heap, now=NOON)
    assert (sorted(done.stashed), sorted(done.replaced)) == (sorted(older), sorted(older))
    assert engine.plan(heap, now=NOON).candidates == []


def test_small_steps_alone_bring_the_older_views_out() -> None:
    heap = forty_reads()
    engine = half_window(heap)
    soft = engine.options.limit(engine.options.soft_limit_percent)
    assert soft is not None
    for _ in range(READS):
        done = engine.step(heap, now=NOON)
        assert done is None or len(done.stashed) <= engine.options.batch
    assert heap.ledger.working.tokens <= soft
    assert heap.bonds.open_calls() == ()


def test_an_older_view_comes_back_whole_where_its_stub_was() -> None:
    heap = forty_reads()
    before = {s.segment_id: s.text for s in heap}
    done = GCEngine().collect(heap, now=NOON)
    for segment_id, stub in done.replaced.items():
        heap.recall(segment_id)
        assert heap.get(segment_id).text == before[segment_id]
        assert not heap.is_working(stub)
    assert [s.segment_id for s in heap.working()] == list(before)


def two_reads(**fields: object) -> list[ContextSegment]:
    """Two reads of a file; the call of the first one is held by its file, or as these fields say."""
    return [
        call("c1", "k1", file_path="f", **fields),
        result("r1", "k1", text=BIG, tokens=None, file_path="f", access="read"),
        call("c2", "k2", file_path="f", pinned=True),
        result("r2", "k2", text=BIG, tokens=None, file_path="f", access="read"),
    ]


def test_a_list_offers_a_superseded_result_whose_call_is_a_root_as_a_stub() -> None:
    listed = [*heap_of(*two_reads())]
    (found,) = GCEngine().analyze_pruning_candidates(listed, {"c1", "r2"}, now=NOW)
    assert (found.segment_id, found.action, found.bond) == ("r1", "evacuate", ("c1", "r1"))
    assert found.evidence == Evidence(kind="superseded", how="re-read", by="the read of f")
    assert 0 < found.freed < found.tokens
    made = GCEngine().generate_pruning_plan([found], found.tokens)
    assert (made.evacuate_segments, made.shortfall) == (["r1"], found.tokens - found.freed)


def test_a_list_takes_a_bond_whole_when_no_root_holds_any_of_it() -> None:
    listed = [*heap_of(*two_reads())]
    found = GCEngine().analyze_pruning_candidates(listed, set(), now=NOW)
    assert {c.segment_id: (c.action, c.reason) for c in found} == {
        "c1": ("stash", "unreachable"),
        "r1": ("stash", "unreachable; superseded (read again) by the read of f"),
    }


def test_a_root_that_names_a_superseded_result_keeps_it_and_its_call() -> None:
    heap = heap_of(*two_reads(), seg("fan", pinned=True, references=["r1"]))
    assert GCEngine(BARE).plan(state(heap)).candidates == []


@pytest.mark.parametrize("text", ["ok", "one line, hardly longer than the stub would be"])
def test_a_result_that_a_stub_would_hardly_shorten_stays(text: str) -> None:
    heap = heap_of(
        call("c1", "k1", file_path="f"),
        result("r1", "k1", text=text, tokens=None, file_path="f", access="read"),
        seg("new", file_path="f", access="read", pinned=True),
    )
    engine = GCEngine(BARE)
    assert engine.plan(state(heap)).candidates == []
    assert engine.analyze_pruning_candidates(list(heap), {"c1", "new"}) == []
    # Where room must be made, the whole bond leaves all the same.
    assert engine.plan(state(heap), free_tokens=10**6).stash_segments == ["r1", "c1"]


def test_what_leaves_with_its_call_for_room_says_so() -> None:
    heap = heap_of(*two_reads())
    plan = GCEngine(BARE).plan(state(heap), free_tokens=10**6)
    room = "least needed: 1,000,000 tokens had to go"
    assert {c.segment_id: (c.action, c.reason) for c in plan.candidates} == {
        "r1": ("stash", room),
        "c1": ("stash", room),
        "r2": ("evacuate", room),
    }


def test_of_a_parallel_batch_only_the_superseded_result_shrinks() -> None:
    heap = heap_of(
        call("c1", "m", call_id="k1", file_path="f"),
        call("c2", "m", call_id="k2", file_path="g"),
        result("r1", "m", call_id="k1", text=BIG, tokens=None, file_path="f", access="read"),
        result("r2", "m", call_id="k2", text=BIG, tokens=None, file_path="g", access="read"),
        seg("new", "the new view", file_path="f", access="read", pinned=True),
    )
    assert GCEngine(BARE).plan(state(heap)).evacuate_segments == ["r1"]
