"""The scoring profiles of the seeds, term by term."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from ctxgc.core import ContextSegment, KeepScore, ScoreContext
from ctxgc.core.score import prune_score
from tests.core.build import NOW, TYPES, fresh, term
from tests.requirements import requirement


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
