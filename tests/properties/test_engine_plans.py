"""Plans over random heaps: safe, sufficient, frugal, and executed exactly as planned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxgc.collector import GCEngine
from ctxgc.core import EngineOptions, GCState, Heap
from ctxgc.core.mark import mark_all
from ctxgc.core.roots import compute_roots
from ctxgc.errors import StalePlanError
from tests.properties import heaps
from tests.properties.plan_checker import Judge, check_plan
from tests.requirements import requirement

NEEDS = st.one_of(st.none(), st.integers(0, 300), st.integers(300, 8_000))
SCOPES = st.sampled_from(("major", "major", "minor"))


def judge_of(state: GCState, options: EngineOptions, scope: str) -> Judge:
    segments, roots = list(state.heap), compute_roots(state)
    if scope == "major":
        return Judge.major(segments, roots, options.strong)
    return Judge.minor(segments, roots, options.strong, state.heap.index.touched_old)


OPTIONS = heaps.options()
TOUCHED = st.lists(st.integers(0, 20), max_size=3)


@st.composite
def cases(draw: st.DrawFn, max_size: int = 14) -> tuple[GCEngine, GCState]:
    """Draw an engine and the state of a heap."""
    heap = heaps.heap_of(draw(heaps.segment_lists(max_size)))
    ids = [segment.segment_id for segment in heap]
    for place in draw(TOUCHED):
        heap.touch(ids[place % len(ids)])
    return GCEngine(draw(OPTIONS)), draw(heaps.states(heap))


def check_case(case: tuple[GCEngine, GCState], need: int | None, scope: str) -> None:
    engine, state = case
    version = state.heap.version
    plan = engine.plan(state, free_tokens=need, scope=scope)
    check_plan(plan, judge_of(state, engine.options, scope), need)
    assert state.heap.version == version


@requirement(
    "S0.sweep.candidates", "S0.sweep.unreachable-first", "S0.sweep.reachable-second",
    "S0.sweep.stash-over-delete", "S0.sweep.token-budget", "S1.acceptance.targets",
    "S1.acceptance.pinned",
)  # fmt: skip
@settings(max_examples=200)
@given(cases(), NEEDS, SCOPES)
def test_a_plan_keeps_every_promise(
    case: tuple[GCEngine, GCState], need: int | None, scope: str
) -> None:
    check_case(case, need, scope)


@pytest.mark.deep
@settings(max_examples=10_000)
@given(cases(40), NEEDS, SCOPES)
def test_a_plan_keeps_every_promise_on_larger_heaps(
    case: tuple[GCEngine, GCState], need: int | None, scope: str
) -> None:
    check_case(case, need, scope)


@given(cases(), NEEDS, SCOPES)
def test_a_collection_does_what_its_plan_says_and_a_second_time_is_refused(
    case: tuple[GCEngine, GCState], need: int | None, scope: str
) -> None:
    engine, state = case
    heap, roots = state.heap, compute_roots(state)
    plan = engine.plan(state, free_tokens=need, scope=scope)
    done = engine.apply(plan, heap)
    working = {segment.segment_id for segment in heap.working()}
    assert roots <= working
    assert working.isdisjoint(c.segment_id for c in plan.candidates)
    assert done.tokens_before == plan.tokens_before
    assert done.tokens_after == heap.ledger.working.tokens <= plan.tokens_after
    if not plan.compress_segments:
        assert done.tokens_after == plan.tokens_after
    if plan.candidates:
        with pytest.raises(StalePlanError):
            engine.apply(plan, heap)


@given(cases(), SCOPES)
def test_taking_all_garbage_twice_takes_nothing_the_second_time(
    case: tuple[GCEngine, GCState], scope: str
) -> None:
    engine, state = case
    reached = set(mark_all(state.heap, compute_roots(state), engine.options.strong).reached())
    engine.collect(state, scope=scope)
    assert engine.plan(state, scope=scope).candidates == []
    assert reached <= {segment.segment_id for segment in state.heap.working()}


@given(heaps.segment_lists(), OPTIONS, st.integers(1, 5_000))
def test_collecting_to_a_window_twice_is_collecting_once(
    segments: list, options: EngineOptions, limit: int
) -> None:
    engine = GCEngine(_with_window(options, limit))
    heap = heaps.heap_of(segments)
    first = engine.collect(heap, now=heaps.NOW)
    again = engine.plan(heap, now=heaps.NOW)
    target = engine.options.limit(engine.options.target_percent)
    assert target is not None
    assert (heap.ledger.working.tokens <= target) == (first.plan.shortfall == 0)
    assert first.plan.shortfall or again.candidates == []


@given(heaps.segment_lists(), OPTIONS, st.integers(1, 5_000))
def test_collecting_again_and_again_never_adds_tokens_and_comes_to_rest(
    segments: list, options: EngineOptions, limit: int
) -> None:
    engine = GCEngine(_with_window(options, limit))
    heap = heaps.heap_of(segments)
    for _ in range(3 * len(segments) + 2):
        done = engine.collect(heap, now=heaps.NOW)
        assert done.tokens_after <= done.tokens_before
        if not done.plan.candidates:
            return
    raise AssertionError("collections do not come to rest")


@requirement("S0.incremental.batch", "S0.incremental.soft-limit")
@given(heaps.segment_lists(), heaps.options(batch=3), st.integers(1, 2_000))
def test_a_step_moves_a_small_batch_of_garbage_and_no_more_than_the_soft_limit_asks(
    segments: list, options: EngineOptions, limit: int
) -> None:
    engine = GCEngine(_with_window(options, limit))
    heap = heaps.heap_of(segments)
    for _ in segments:
        state = engine.state(heap, heaps.NOW)
        judge, before = judge_of(state, engine.options, "major"), heap.ledger.working.tokens
        done = engine.step(state)
        soft = engine.options.limit(engine.options.soft_limit_percent)
        assert done is None or soft < before
        if done is not None:
            left, shrunk = {*done.stashed, *done.deleted}, set(done.replaced)
            assert len(left) <= 3
            assert left - shrunk <= judge.garbage()
            assert shrunk <= judge.outlived()
            assert all(judge.unit(segment_id) <= left for segment_id in left - shrunk)


def _with_window(options: EngineOptions, limit: int) -> EngineOptions:
    fields = {name: getattr(options, name) for name in options.__struct_fields__}
    return EngineOptions(**{**fields, "context_limit": limit})


def test_the_judge_itself_refuses_a_plan_that_takes_a_pin() -> None:
    heap = Heap()
    heap.add_all(heaps.plain("a", "b", pinned="a"))
    engine = GCEngine(heaps.NO_ROOTS)
    state = engine.state(heap, heaps.NOW)
    unpinned = heaps.heap_of(heaps.plain("a", "b"))
    plan = engine.plan(unpinned, now=heaps.NOW)
    with pytest.raises(AssertionError):
        check_plan(plan, judge_of(state, engine.options, "major"), None)
