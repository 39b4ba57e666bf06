"""The engine: S1's four methods, and the cycle over a heap."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ctxgc.collector import GCEngine
from ctxgc.collector.engine import IGCEngine
from ctxgc.core import (
    EngineOptions,
    GCState,
    Heap,
    RootKnobs,
)
from ctxgc.core.codec import heap_to_json
from ctxgc.errors import ConfigError, DuplicateSegmentError, InputError
from tests.core.build import BARE, NO_ROOTS, NOW, call, heap_of, result, seg, state
from tests.requirements import requirement


def parameters(method: Any) -> list[str]:
    return [
        p.name for p in inspect.signature(method).parameters.values() if p.kind != p.KEYWORD_ONLY
    ]


@requirement(
    "S1.engine.interface",
    "S1.engine.analyze-pruning-candidates",
    "S1.engine.compute-reachability",
    "S1.engine.score-segment",
    "S1.engine.generate-pruning-plan",
)
@pytest.mark.parametrize("owner", [IGCEngine, GCEngine])
def test_the_engine_has_the_four_methods_of_the_seed(owner: type) -> None:
    assert {name: parameters(getattr(owner, name)) for name in sorted(IGCEngine.__abstractmethods__)} == {
        "analyze_pruning_candidates": ["self", "segments", "roots"],
        "compute_reachability": ["self", "roots", "references"],
        "generate_pruning_plan": ["self", "candidates", "target_tokens"],
        "score_segment": ["self", "segment", "now"],
    }  # fmt: skip
    assert issubclass(GCEngine, IGCEngine)


def test_the_interface_cannot_be_used_by_itself() -> None:
    with pytest.raises(TypeError):
        IGCEngine()  # type: ignore[abstract]


# -- candidates ------------------------------------------------------------------------------------


@requirement("S1.candidates.scored", "S1.engine.analyze-pruning-candidates")
def test_candidates_are_the_unreachable_with_their_scores_and_reasons() -> None:
    segments = [seg("kept"), seg("root", references=["kept"]), seg("x", type="decision"), seg("y")]
    found = GCEngine().analyze_pruning_candidates(segments, {"root"}, now=NOW)
    assert [(c.segment_id, c.type, c.action, c.tokens, c.age) for c in found] == [
        ("y", "log", "stash", 3, 172_800.0),
        ("x", "decision", "stash", 3, 172_800.0),
    ]
    assert found[0].score < found[1].score
    assert found[0].reason == "unreachable"


@requirement("S1.candidates.top")
def test_the_top_candidates_can_be_asked_for() -> None:
    segments = [seg(f"s{n}") for n in range(9)]
    engine = GCEngine()
    everything = engine.analyze_pruning_candidates(segments, set())
    assert len(everything) == 9
    assert engine.analyze_pruning_candidates(segments, set(), limit=3) == everything[:3]


def test_no_segments_are_no_candidates() -> None:
    assert GCEngine().analyze_pruning_candidates([], {"ghost"}) == []


@requirement("S1.engine.analyze-pruning-candidates", "S1.candidates.sorted")
@pytest.mark.parametrize("profile", ["default", "s0", "s1", "points"])
def test_candidates_follow_from_the_given_roots_refcounts_and_the_score_of_a_segment(
    profile: str,
) -> None:
    """The steps of the seed as it writes them, whatever else the segments show."""
    segments = [
        seg("system", type="message", role="system", policy="locked", refcount=3),
        seg("request", type="message", role="user", created_at=NOW),
        seg("fresh", type="decision", created_at=NOW),
        seg("root", tags=["topic", "ref:tagged"], references=["deep"], file_path="a.py"),
        seg("deep", references=["root"]),
        seg("tagged"),
        seg("same file", type="code", file_path="a.py", tags=["topic"], refcount=9),
        seg("pin", pinned=True),
        seg("error", failed=True, refcount=1, generation="old"),
    ]
    engine = GCEngine(EngineOptions(profile=profile))
    found = engine.analyze_pruning_candidates(segments, {"root"}, now=NOW)
    unreachable = [s for s in segments if s.segment_id not in ("root", "deep", "tagged", "pin")]
    scores = [(engine.score_segment(s, NOW), s.segment_id) for s in unreachable]
    assert [(c.score, c.segment_id) for c in found] == sorted(scores, key=lambda s: s[0])


def test_the_rules_of_the_engine_are_roots_like_any_others() -> None:
    """Known fault 1: the root set was empty and recent messages were offered for pruning."""
    segments = [
        *[seg(f"m{n}", type="message", role="user") for n in range(4)],
        seg("fresh", type="decision", created_at=NOW),
        seg("log"),
    ]
    engine = GCEngine()
    roots = engine.compute_roots(engine.state(heap_of(*segments), NOW))
    found = engine.analyze_pruning_candidates(segments, roots, now=NOW)
    assert [c.segment_id for c in found] == ["log"]
    assert [c.segment_id for c in engine.plan(heap_of(*segments), now=NOW).candidates] == ["log"]


def test_what_a_pin_references_is_not_offered() -> None:
    """Known fault 2: pins were skipped but were no roots."""
    segments = [seg("detail"), seg("pin", pinned=True, references=["detail"]), seg("log")]
    found = GCEngine().analyze_pruning_candidates(segments, set())
    assert [c.segment_id for c in found] == ["log"]


def test_a_call_and_its_result_are_reached_and_offered_together() -> None:
    segments = [call("c1", "1"), result("r1", "1"), call("c2", "2"), result("r2", "2")]
    engine = GCEngine()
    found = engine.analyze_pruning_candidates(segments, ["r1"])
    assert [(c.segment_id, c.bond) for c in found] == [("r2", ("c2", "r2")), ("c2", ("c2", "r2"))]
    assert engine.generate_pruning_plan(found, 1).stash_segments == ["r2", "c2"]


def test_by_default_the_latest_time_that_a_segment_carries_is_now() -> None:
    segments = [seg("old"), seg("new", created_at=NOW)]
    engine = GCEngine()
    found = engine.analyze_pruning_candidates(segments, ())
    assert found == engine.analyze_pruning_candidates(segments, (), now=NOW)
    assert [(c.segment_id, c.age) for c in found] == [("old", 172_800.0), ("new", 0.0)]


def test_the_tokens_of_a_list_are_counted_where_they_are_not_given() -> None:
    segments = [seg("given", tokens=7), seg("counted", "four words of text")]
    engine = GCEngine()
    found = engine.analyze_pruning_candidates(segments, (), count=lambda text: len(text.split()))
    assert {c.segment_id: c.tokens for c in found} == {"given": 7, "counted": 4}
    assert {c.segment_id: c.tokens for c in engine.analyze_pruning_candidates(segments, ())} == {
        "given": 7,
        "counted": 5,
    }


def test_a_list_takes_the_same_segment_twice_but_not_one_id_for_two_texts() -> None:
    twice = [seg("a"), seg("a")]
    assert [c.segment_id for c in GCEngine().analyze_pruning_candidates(twice, set())] == ["a"]
    with pytest.raises(DuplicateSegmentError):
        GCEngine().analyze_pruning_candidates([seg("a"), seg("a", "another text")], set())


def test_a_text_is_not_a_set_of_roots_and_a_limit_not_below_zero() -> None:
    engine = GCEngine()
    for ask in (
        lambda: engine.analyze_pruning_candidates([seg("a")], "a"),
        lambda: engine.compute_reachability("a", {}),
    ):
        with pytest.raises(InputError, match="roots must be a set of ids, got str"):
            ask()
    with pytest.raises(InputError, match="limit cannot be -1"):
        engine.analyze_pruning_candidates([seg("a")], (), limit=-1)


def test_a_reference_or_root_that_is_not_in_the_list_leads_nowhere() -> None:
    segments = [seg("a", references=["ghost"], tier="stashed"), seg("b", references=["ghost"])]
    found = GCEngine().analyze_pruning_candidates(segments, {"ghost", "phantom"})
    assert [c.segment_id for c in found] == ["b"]


def test_what_a_policy_asks_to_delete_is_offered_for_deletion_with_its_whole_bond() -> None:
    segments = [
        seg("gone", policy="ephemeral"),
        call("c", "1", policy="ephemeral"),
        result("r", "1"),
    ]
    engine = GCEngine(EngineOptions(delete_policies=("ephemeral",)))
    plan = engine.generate_pruning_plan(engine.analyze_pruning_candidates(segments, ()), 999)
    assert (plan.delete_segments, plan.stash_segments) == (["gone"], ["r", "c"])


# -- plans from candidates -------------------------------------------------------------------------


@requirement("S1.plan.most-prunable-first", "S1.plan.accumulates")
def test_a_plan_from_candidates_takes_the_most_prunable_until_the_target() -> None:
    segments = [seg(f"s{n}", tokens=10, type=t) for n, t in enumerate(("note", "log", "decision"))]
    engine = GCEngine()
    candidates = engine.analyze_pruning_candidates(segments, set())
    plan = engine.generate_pruning_plan(candidates[::-1], 15)
    assert (plan.stash_segments, plan.total_tokens_freed, plan.shortfall) == (["s1", "s0"], 20, 0)
    assert plan.heap_version is None


def test_every_candidate_counts_however_low_its_score() -> None:
    """Known fault 3: 200 tokens of candidates, target 150, and the plan freed 0."""
    segments = [seg(name, tokens=100, created_at=NOW) for name in "ab"]
    for profile in ("default", "s0", "s1", "points"):
        engine = GCEngine(EngineOptions(profile=profile, knobs=NO_ROOTS))
        candidates = engine.analyze_pruning_candidates(segments, set(), now=NOW)
        assert engine.generate_pruning_plan(candidates, 150).total_tokens_freed == 200


# -- the cycle -------------------------------------------------------------------------------------


def engine_of(limit: int, **options: Any) -> GCEngine:
    return GCEngine(EngineOptions(**{"knobs": NO_ROOTS, "context_limit": limit, **options}))


@requirement("S0.full.on-request", "S0.full.roots-mark-sweep")
def test_a_collection_on_request_finds_roots_marks_and_sweeps_everything() -> None:
    heap = heap_of(
        seg("kept", generation="old"),
        seg("root", pinned=True, references=["kept"]),
        seg("old garbage", generation="old"),
        seg("garbage"),
    )
    done = GCEngine(BARE).collect(heap, now=NOW)
    assert done.plan.scope == "major"
    assert sorted(done.stashed) == ["garbage", "old garbage"]
    assert [s.segment_id for s in heap.working()] == ["kept", "root"]


@requirement("S0.full.under-budget")
def test_a_full_collection_lands_comfortably_under_the_budget() -> None:
    heap = heap_of(*[seg(f"s{n}", tokens=10) for n in range(95)])
    done = engine_of(1_000).collect(heap, now=NOW)
    assert (done.tokens_before, done.tokens_after) == (950, 600)


@requirement("S0.full.hard-limit", "S0.incremental.on-update")
def test_every_update_steps_and_the_hard_limit_brings_a_full_collection() -> None:
    engine, heap, scopes = engine_of(1_000, batch=1), Heap(), []
    for n in range(100):
        done = engine.update(heap, [seg(f"s{n}", tokens=50)], now=NOW)
        scopes.append(done.plan.scope if done else None)
        assert heap.ledger.working.tokens < 900
    assert scopes[:15] == [None] * 14 + ["step"]
    assert set(scopes[14:]) == {"step"}
    heavy = engine.update(heap, [seg("heavy", tokens=400)], now=NOW)
    assert heavy is not None
    assert (heavy.plan.scope, heavy.tokens_after <= 600) == ("major", True)


@requirement("S0.full.hard-limit")
@pytest.mark.parametrize(("tokens", "due"), [(899, False), (900, True), (2_000, True)])
def test_a_full_collection_is_due_at_nine_tenths_of_the_window(tokens: int, due: bool) -> None:
    heap = heap_of(seg("a", tokens=tokens))
    assert engine_of(1_000).is_due(heap) is due
    assert GCEngine().is_due(heap) is False


@requirement("S0.incremental.every-n")
def test_the_step_may_run_only_every_n_updates() -> None:
    engine, heap = engine_of(1_000, step_every=3, batch=1), heap_of(seg("s", tokens=800))
    ran = [engine.update(heap, [seg(f"s{n}", tokens=1)], now=NOW) is not None for n in range(9)]
    assert ran == [False, False, True] + [False] * 6
    assert heap.updates == 9


def test_without_a_window_a_collection_takes_the_garbage_only() -> None:
    heap = heap_of(seg("kept"), seg("root", pinned=True, references=["kept"]), seg("x"))
    assert GCEngine(BARE).collect(heap, now=NOW).stashed == ["x"]


def test_under_its_target_a_collection_takes_nothing() -> None:
    heap = heap_of(seg("x", tokens=10))
    assert engine_of(1_000).plan(heap, now=NOW).candidates == []


def test_a_state_carries_task_file_and_roots_beside_the_heap() -> None:
    heap = heap_of(seg("task", task_id="t"), seg("file", file_path="f"), seg("held"), seg("x"))
    state = GCState(
        heap=heap, now=NOW, current_task_id="t", active_file="f", held={"held": "mine"}, knobs=NO_ROOTS
    )  # fmt: skip
    engine = GCEngine(BARE)
    assert engine.collect(state).stashed == ["x"]
    assert engine.compute_roots(state) == {"task", "file", "held"}


def test_the_knobs_of_the_engine_are_those_of_its_roots() -> None:
    heap = heap_of(*[seg(f"m{n}", type="message") for n in range(4)])
    engine = GCEngine(EngineOptions(knobs=RootKnobs(recent_messages=1)))
    assert engine.collect(heap, now=NOW).stashed == ["m0", "m1", "m2"]


@requirement("S1.engine.score-segment")
def test_a_segment_is_scored_by_the_profile_of_the_engine() -> None:
    segment = seg("a", created_at=NOW - timedelta(hours=2))
    for profile in ("default", "s0", "s1", "points"):
        engine = GCEngine(EngineOptions(profile=profile))
        assert engine.score_segment(segment, NOW) == engine.explain(segment, NOW).score


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - naive on purpose


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda heap: GCEngine().plan(heap), "now"),
        (lambda heap: GCEngine().plan(heap, now=NAIVE), "now"),
        (lambda heap: GCEngine().step(heap, now=NAIVE), "now"),
        (lambda heap: GCEngine().collect(heap, now=NOW, free_tokens=-1), "free_tokens"),
        (lambda heap: GCEngine().collect(heap, now=NOW, scope="mayor"), "scope"),
        (lambda heap: GCEngine().update(heap, [seg("b", references=["z"])], now=NOW), "references"),
        (lambda heap: GCEngine().update(heap, [seg("a", "other")], now=NOW), "segment_id"),
    ],
)
def test_a_bad_question_is_refused_by_its_field_and_changes_nothing(ask: Any, field: str) -> None:
    heap = heap_of(seg("a"), seg("x"))
    before = heap_to_json(heap)
    with pytest.raises(InputError) as caught:
        ask(heap)
    assert caught.value.details["field"] == field
    assert heap_to_json(heap) == before


def test_an_unknown_profile_or_weight_is_refused_when_the_engine_is_made() -> None:
    for options in (EngineOptions(profile="zzz"), EngineOptions(weights={"zzz": 1.0})):
        with pytest.raises(ConfigError):
            GCEngine(options)


def test_times_of_any_zone_are_compared_as_instants() -> None:
    """Known fault 12: local-naive and UTC-naive times were mixed."""
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    heaps = [heap_of(seg("d", type="decision", created_at=t)) for t in (NOW, there)]
    plans = [GCEngine().plan(heap, now=when) for heap in heaps for when in (NOW, there)]
    assert all(plan == plans[0] for plan in plans)


def test_an_analysis_is_that_of_its_moment() -> None:
    heap = heap_of(seg("kept", pinned=True), seg("old"), seg("lost"))
    found = GCEngine(BARE).analyze(state(heap))
    heap.stash("old")
    assert {segment.segment_id for segment in found.garbage} == {"old", "lost"}
