"""keep_score and its profiles."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import GCEngine
from ctxgc.core import EngineOptions, KeepScore, ScoreContext
from ctxgc.core.score import DEFAULT_WEIGHTS, PROFILE_NAMES
from ctxgc.errors import ConfigError, InputError
from tests.core.build import NOW, TYPES, fresh, heap_of, seg, term
from tests.requirements import requirement


@requirement("S0.score.pinned-infinite")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_a_pinned_segment_scores_infinity_in_every_profile(profile: str) -> None:
    pinned, context = fresh(pinned=True), ScoreContext(now=NOW)
    assert KeepScore(profile)(pinned, context) == math.inf
    assert KeepScore(profile).all([pinned], context) == [math.inf]
    assert KeepScore(profile).explain(pinned, context).terms[0] == ("pinned", math.inf)


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
