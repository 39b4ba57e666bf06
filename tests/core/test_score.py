"""keep_score and its profiles."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from ctxgc.core.engine import GCEngine
from ctxgc.core.options import EngineOptions
from ctxgc.core.profiles import DEFAULT_WEIGHTS
from ctxgc.core.score import PROFILE_NAMES, KeepScore, ScoreContext, prune_score
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import ConfigError, InputError
from tests.core.build import NOW, heap_of, seg
from tests.requirements import requirement

TYPES = ("decision", "note", "summary", "code", "message", "log")


def term(profile: str, name: str, segment: ContextSegment, **fields: Any) -> float:
    """Return one term of a score with a coefficient of one."""
    weights = {name: 1.0} if name in DEFAULT_WEIGHTS[profile] else {}
    context = ScoreContext(now=NOW, **fields)
    return dict(KeepScore(profile, weights).explain(segment, context).terms)[name]


def fresh(**fields: Any) -> ContextSegment:
    return seg("a", **{"created_at": NOW, **fields})


def unknown_type() -> ContextSegment:
    """A segment whose type no table knows: it cannot be made, only forced."""
    made = fresh()
    force_setattr(made, "type", "poem")
    return made


# -- S0 --------------------------------------------------------------------------------------------


@requirement(
    "S0.score.importance-decision",
    "S0.score.importance-note",
    "S0.score.importance-summary",
    "S0.score.importance-code",
    "S0.score.importance-message",
    "S0.score.importance-log",
)
@pytest.mark.parametrize(
    ("kind", "importance"),
    [("decision", 1.0), ("note", 0.8), ("summary", 0.7), ("code", 0.6), ("message", 0.5), ("log", 0.2)],
)  # fmt: skip
def test_s0_importance_is_the_table_of_the_seed(kind: str, importance: float) -> None:
    assert term("s0", "importance", fresh(type=kind)) == importance


@requirement("S0.score.importance-unknown")
def test_s0_importance_of_an_unknown_type_is_two_fifths() -> None:
    assert term("s0", "importance", unknown_type()) == 0.4


@requirement("S0.score.recency")
@pytest.mark.parametrize(("seconds", "recency"), [(0, 1.0), (1, 0.5), (3, 0.25), (99, 0.01)])
def test_s0_recency_falls_with_the_seconds_since_the_last_touch(
    seconds: int, recency: float
) -> None:
    touched = NOW - timedelta(seconds=seconds)
    assert term("s0", "recency", fresh(last_touched_at=touched)) == recency


@requirement("S0.score.ref-factor")
@pytest.mark.parametrize(("refcount", "factor"), [(0, 0.0), (1, 0.2), (5, 1.0), (50, 1.0)])
def test_s0_references_count_up_to_five(refcount: int, factor: float) -> None:
    assert term("s0", "references", fresh(refcount=refcount)) == factor


@requirement("S0.score.gen-bonus")
def test_s0_gives_the_young_a_bonus() -> None:
    assert term("s0", "generation", fresh()) == 0.1
    assert term("s0", "generation", fresh(generation="old")) == 0.0


@requirement("S0.score.weights")
def test_s0_weighs_its_terms_as_the_seed_does() -> None:
    score = KeepScore("s0")(fresh(type="code", refcount=2), ScoreContext(now=NOW))
    assert score == pytest.approx(0.4 * 1.0 + 0.3 * 0.6 + 0.2 * 0.4 + 0.1 * 0.1)


@requirement("S0.score.pinned-infinite")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_a_pinned_segment_scores_infinity_in_every_profile(profile: str) -> None:
    pinned, context = fresh(pinned=True), ScoreContext(now=NOW)
    assert KeepScore(profile)(pinned, context) == math.inf
    assert KeepScore(profile).all([pinned], context) == [math.inf]
    assert KeepScore(profile).explain(pinned, context).terms[0] == ("pinned", math.inf)


# -- S1 --------------------------------------------------------------------------------------------


def s1_terms(segment: ContextSegment) -> dict[str, float]:
    """Return S1's four scores, each by itself."""
    names = ("recency", "type", "references", "generation")
    return {
        name: prune_score(segment, NOW, {other: float(other == name) for other in names})
        for name in names
    }


@requirement(
    "S1.score.type-log",
    "S1.score.type-note",
    "S1.score.type-code",
    "S1.score.type-message",
    "S1.score.type-decision",
    "S1.score.type-summary",
)
@pytest.mark.parametrize(
    ("kind", "score"),
    [("log", 1.0), ("note", 0.8), ("code", 0.5), ("message", 0.3), ("decision", 0.1), ("summary", 0.2)],
)  # fmt: skip
def test_s1_types_are_the_table_of_the_seed(kind: str, score: float) -> None:
    assert s1_terms(fresh(type=kind))["type"] == score


@requirement("S1.score.type-unknown")
def test_s1_gives_an_unknown_type_a_half() -> None:
    assert s1_terms(unknown_type())["type"] == 0.5


@requirement("S1.score.recency")
def test_s1_recency_is_the_days_since_the_last_touch() -> None:
    ages = [fresh(last_touched_at=NOW - timedelta(hours=hours)) for hours in (0, 12, 24, 240)]
    assert [s1_terms(segment)["recency"] for segment in ages] == [0.0, 0.5, 1.0, 10.0]


@requirement("S1.score.refcount")
def test_s1_references_count_the_less_the_more_there_are() -> None:
    scores = [s1_terms(fresh(refcount=count))["references"] for count in (0, 1, 3)]
    assert scores == [1.0, 0.5, 0.25]


@requirement("S1.score.generation")
def test_s1_scores_the_old_higher() -> None:
    scores = [s1_terms(fresh(generation=name))["generation"] for name in ("old", "young")]
    assert scores == [1.0, 0.3]


@requirement("S1.score.weights")
def test_s1_weighs_its_terms_as_the_seed_does() -> None:
    segment = fresh(type="code", refcount=1, last_touched_at=NOW - timedelta(days=2))
    expected = 0.4 * 2.0 + 0.3 * 0.5 + 0.2 * 0.5 + 0.1 * 0.3
    assert prune_score(segment, NOW) == pytest.approx(expected)


@given(
    st.sampled_from(TYPES), st.integers(0, 9), st.integers(0, 10**6), st.sampled_from(("young", "old"))
)  # fmt: skip
def test_the_profile_s1_is_one_minus_the_prune_score(
    kind: str, refcount: int, seconds: int, generation: str
) -> None:
    touched = NOW - timedelta(seconds=seconds)
    segment = fresh(type=kind, refcount=refcount, last_touched_at=touched, generation=generation)
    keep = KeepScore("s1")(segment, ScoreContext(now=NOW))
    assert keep == pytest.approx(1 - prune_score(segment, NOW))


# -- points ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minutes", "points"), [(4, 30), (5, 20), (29, 20), (30, 10), (120, 0)])
def test_points_for_recency(minutes: int, points: int) -> None:
    touched = NOW - timedelta(minutes=minutes)
    assert term("points", "recency", fresh(last_touched_at=touched)) == points


@pytest.mark.parametrize(("task", "points"), [("t1", 40), ("t2", 25), ("t3", 0), (None, 0)])
def test_points_for_relevance(task: str | None, points: int) -> None:
    fields = {"current_task_id": "t1", "task_dependencies": frozenset({"t2"})}
    assert term("points", "relevance", fresh(task_id=task), **fields) == points


@pytest.mark.parametrize(
    ("fields", "points"),
    [
        ({}, 0),
        ({"tags": ["examples"]}, 5),
        ({"tags": ["examples", "active_code"]}, 15),
        ({"role": "system"}, 20),
        ({"source": "system", "tags": ["examples"]}, 20),
    ],
)
def test_points_for_the_kind_of_content(fields: dict[str, Any], points: int) -> None:
    assert term("points", "type", fresh(**fields)) == points


def test_points_for_references_and_the_best_of_all() -> None:
    assert [term("points", "references", fresh(refcount=n)) for n in (0, 2, 9)] == [0, 4, 10]
    best = fresh(role="system", task_id="t", refcount=9)
    assert KeepScore("points")(best, ScoreContext(now=NOW, current_task_id="t")) == 100


# -- default ---------------------------------------------------------------------------------------


@requirement("S0.score.type-order")
@pytest.mark.parametrize("profile", ["default", "s0", "s1"])
def test_decisions_and_summaries_outrank_logs(profile: str) -> None:
    scores = {k: KeepScore(profile)(fresh(type=k), ScoreContext(now=NOW)) for k in TYPES}
    assert min(scores["decision"], scores["summary"], scores["note"]) > scores["log"]


@requirement("S0.score.refcount-order")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_a_higher_refcount_makes_a_segment_more_important(profile: str) -> None:
    scores = [KeepScore(profile)(fresh(refcount=n), ScoreContext(now=NOW)) for n in (0, 1, 3)]
    assert scores == sorted(set(scores))


@requirement("S0.score.generation-bias")
def test_the_generation_biases_the_score_and_tenure_protects_by_default() -> None:
    scores = {
        profile: [
            KeepScore(profile)(fresh(generation=name), ScoreContext(now=NOW))
            for name in ("young", "old")
        ]
        for profile in ("default", "s0", "s1")
    }
    assert scores["default"][0] < scores["default"][1]
    assert scores["s0"][0] > scores["s0"][1]
    assert scores["s1"][0] > scores["s1"][1]


@requirement("S0.score.age-steps", "S0.score.last-touched-age")
def test_age_and_idleness_in_steps_halve_their_terms() -> None:
    segment = fresh(created_step=20, last_touched_step=60)
    assert term("default", "recency", segment, step=60) == 1.0
    assert term("default", "recency", segment, step=100) == 0.5
    assert term("default", "recency", segment, step=140) == 0.25
    assert term("default", "age", segment, step=100) == 0.25


def test_without_a_step_the_clock_tells_the_age() -> None:
    scores = [
        KeepScore()(fresh(last_touched_at=NOW - timedelta(minutes=minutes)), ScoreContext(now=NOW))
        for minutes in (0, 5, 60, 60 * 24)
    ]
    assert scores == sorted(set(scores), reverse=True)
    half = fresh(last_touched_at=NOW - timedelta(seconds=40 * 30))
    assert term("default", "recency", half) == 0.5


def test_what_is_hard_to_get_again_stays_longer() -> None:
    scores = [
        KeepScore()(fresh(access=access), ScoreContext(now=NOW))
        for access in ("read", "run", "edit", None)
    ]
    assert scores == sorted(set(scores))


def test_a_decision_of_last_week_outlives_a_fresh_log() -> None:
    """Known fault 4: with unbounded recency the decision was deleted before the log."""
    decision = fresh(type="decision", created_at=NOW - timedelta(days=7), created_step=1)
    log = fresh(created_step=10_000, last_touched_step=10_000)
    for context in (ScoreContext(now=NOW), ScoreContext(now=NOW, step=10_000)):
        assert KeepScore()(decision, context) > KeepScore()(log, context)


@given(st.sampled_from(TYPES), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 100))
def test_the_default_score_stays_between_zero_and_one(
    kind: str, idle: int, refcount: int, touches: int
) -> None:
    segment = fresh(type=kind, refcount=refcount, touches=touches, generation="old")
    context = ScoreContext(now=NOW, step=idle, soft={"a": 1.0})
    assert 0.0 <= KeepScore()(segment, context) <= 1.0 + 1e-12


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_an_explanation_lists_terms_that_add_up_to_the_score(profile: str) -> None:
    heap = heap_of(seg("a", type="code", access="read", tags=["examples"], task_id="t"))
    context = ScoreContext(now=NOW, step=9, current_task_id="t", soft={"a": 0.5})
    explained = KeepScore(profile).explain(heap.get("a"), context)
    assert explained.profile == profile
    assert explained.score == pytest.approx(sum(value for _, value in explained.terms))
    assert KeepScore(profile).all(heap, context) == [explained.score]


@requirement("S0.scope.coefficients-are-knobs")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_every_coefficient_is_configuration(profile: str) -> None:
    segment = fresh(refcount=1, created_at=NOW - timedelta(hours=3), tags=["examples"], task_id="t")
    for name in DEFAULT_WEIGHTS[profile]:
        engine = GCEngine(EngineOptions(profile=profile, weights={name: 7.5}))
        assert engine.explain(segment, NOW).profile == profile
        assert KeepScore(profile, {name: 7.5}).weights[name] == 7.5


@pytest.mark.parametrize(
    ("make", "field", "hint"),
    [
        (lambda: KeepScore("defualt"), "score_profile", "did you mean 'default'?"),
        (lambda: KeepScore("default", {"recensy": 1}), "score_weights", "did you mean 'recency'?"),
        (lambda: KeepScore("s0", {"zz": 1}), "score_weights", "use one of: "),
        (lambda: KeepScore("s0", {"recency": math.nan}), "score_weights", ""),
        (lambda: KeepScore("s0", {"recency": "1"}), "score_weights", ""),  # type: ignore[dict-item]
        (lambda: KeepScore("default", {"half_life_steps": 0}), "score_weights", ""),
    ],
)
def test_an_unknown_profile_or_weight_is_refused_by_name(make: Any, field: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.details["field"] == field
    assert caught.value.hint.startswith(hint)


def test_a_score_at_a_naive_time_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        GCEngine().score_segment(fresh(), datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
    assert caught.value.details == {"field": "now"}
