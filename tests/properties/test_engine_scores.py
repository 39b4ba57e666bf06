"""keep_score profiles over any segment: terms add up, bounds hold, orders are as promised."""

from __future__ import annotations

import math
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import ContextSegment, KeepScore, ScoreContext
from ctxgc.core.score import PROFILE_NAMES, prune_score
from tests.properties import heaps
from tests.requirements import requirement

SEGMENTS = st.tuples(heaps.batches(max_size=1), st.integers(0, 12), st.integers(0, 10_000)).map(
    lambda drawn: msgspec.structs.replace(
        drawn[0][0], refcount=drawn[1], last_touched_step=drawn[2], tags=drawn[0][0].tags
    )
)
CONTEXTS = st.builds(
    ScoreContext,
    now=st.integers(0, 100_000).map(lambda minutes: heaps.NOW + timedelta(minutes=minutes)),
    step=st.one_of(st.none(), st.integers(0, 20_000)),
    current_task_id=st.sampled_from((None, "k1")),
    task_dependencies=st.just(frozenset({"k2"})),
    soft=st.sampled_from(({}, {"s0": 1.0}, {"s0": 0.125})),
)
PROFILES = st.sampled_from(PROFILE_NAMES)


@given(SEGMENTS, CONTEXTS, PROFILES)
def test_the_terms_of_an_explanation_add_up_to_the_score(
    segment: ContextSegment, context: ScoreContext, profile: str
) -> None:
    scorer = KeepScore(profile)
    explained = scorer.explain(segment, context)
    assert explained.score == scorer(segment, context) == sum(value for _, value in explained.terms)
    assert (explained.score == math.inf) == segment.pinned
    assert list(scorer.all([segment, segment], context)) == [explained.score] * 2


@given(SEGMENTS, CONTEXTS)
def test_profile_s1_is_the_mirror_of_the_prune_score(
    segment: ContextSegment, context: ScoreContext
) -> None:
    free = msgspec.structs.replace(segment, pinned=False)
    mirrored = 1 - prune_score(free, context.now)
    assert KeepScore("s1")(free, context) == pytest.approx(mirrored)


@requirement("S1.acceptance.scores")
@given(SEGMENTS, CONTEXTS)
def test_bounded_profiles_stay_within_their_bounds(
    segment: ContextSegment, context: ScoreContext
) -> None:
    free = msgspec.structs.replace(segment, pinned=False)
    assert 0 <= KeepScore("default")(free, context) <= 1 + 1e-9
    assert 0 <= KeepScore("points")(free, context) <= 100
    assert 0 <= KeepScore("s0")(free, context) <= 1


@requirement("S0.score.refcount-order")
@given(SEGMENTS, CONTEXTS, PROFILES, st.integers(1, 5))
def test_more_references_never_lower_a_score(
    segment: ContextSegment, context: ScoreContext, profile: str, more: int
) -> None:
    scorer = KeepScore(profile)
    referenced = msgspec.structs.replace(segment, refcount=segment.refcount + more)
    assert scorer(referenced, context) >= scorer(segment, context)


@given(SEGMENTS, CONTEXTS, PROFILES, st.integers(1, 10_000))
def test_a_later_touch_never_lowers_a_score(
    segment: ContextSegment, context: ScoreContext, profile: str, minutes: int
) -> None:
    later = msgspec.structs.replace(
        segment,
        last_touched_at=segment.last_touched_at + timedelta(minutes=minutes),
        last_touched_step=segment.last_touched_step + minutes,
    )
    scorer = KeepScore(profile)
    assert scorer(later, context) >= scorer(segment, context)


@requirement("S0.score.type-order")
@given(st.integers(0, 100_000), st.sampled_from((None, "run", "read")))
def test_an_old_decision_outranks_a_fresh_log_under_the_default(
    age: int, access: str | None
) -> None:
    context = ScoreContext(now=heaps.NOW, step=100_000)
    decision = ContextSegment(
        text="use msgspec", type="decision", created_at=heaps.NOW - timedelta(minutes=age),
        created_step=100_000 - age, last_touched_step=100_000 - age,
    )  # fmt: skip
    log = ContextSegment(
        text="ok", type="log", created_at=heaps.NOW, access=access, created_step=100_000,
        last_touched_step=100_000,
    )  # fmt: skip
    scorer = KeepScore("default")
    assert scorer(decision, context) > scorer(log, context)
