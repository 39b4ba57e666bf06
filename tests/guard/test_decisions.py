"""S4's decision tree, branch by branch, and its points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctxgc.guard import ContentItem, Focus, PriorityMatrix
from ctxgc.guard.pruner import Verdict, decide, points
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOCUS = Focus(
    now=NOW, current_task_id="t", task_dependencies=frozenset({"d"}), active_file="active.py"
)
BARE = PriorityMatrix(always_keep=(), keep_if_relevant=(), keep_if_space=(), always_prune=())
OLD = timedelta(hours=3)


def item(
    kind: str = "tool_message", /, *, age: timedelta = timedelta(0), **fields: Any
) -> ContentItem:
    return ContentItem(**{"id": "x", "type": kind, "timestamp": NOW - age, "size": 10, **fields})


def verdict(content: ContentItem) -> Verdict:
    return decide([content], FOCUS, BARE)["x"].verdict


@requirement("S4.tree.current-task")
def test_current_task_content_that_must_stay_is_essential_and_the_rest_is_weighed() -> None:
    assert verdict(item("current_task")) is Verdict.ESSENTIAL
    assert verdict(item(task_id="t", age=OLD, is_essential=True)) is Verdict.ESSENTIAL
    assert verdict(item(task_id="t", age=OLD)) is Verdict.WEIGHED


@requirement("S4.tree.recent")
def test_recent_content_of_the_current_task_is_essential_and_the_rest_is_weighed() -> None:
    assert verdict(item(task_id="t")) is Verdict.RELEVANT
    assert verdict(item(task_id="d")) is Verdict.RELEVANT
    assert verdict(item(file_path="active.py")) is Verdict.RELEVANT
    assert verdict(item(task_id="z")) is Verdict.WEIGHED


@requirement("S4.tree.old")
def test_old_content_is_weighed_when_referenced_recently_and_else_pruned() -> None:
    recently = NOW - timedelta(minutes=1)
    assert verdict(item(age=OLD, last_referenced_at=recently)) is Verdict.WEIGHED
    assert verdict(item(age=OLD, reference_count=1)) is Verdict.WEIGHED
    stale = item(age=OLD, reference_count=9, last_referenced_at=NOW - OLD)
    assert verdict(stale) is Verdict.PRUNED
    assert verdict(item(age=OLD)) is Verdict.PRUNED


@requirement("S4.tree.system")
def test_system_prompts_are_essential() -> None:
    assert verdict(item("system_prompt", age=OLD)) is Verdict.ESSENTIAL


@requirement("S4.tree.examples")
def test_examples_are_essential_while_relevant_and_else_pruned() -> None:
    assert verdict(item("examples", task_id="t")) is Verdict.RELEVANT
    assert verdict(item("examples")) is Verdict.PRUNED


@requirement("S4.pruner.recency")
@pytest.mark.parametrize(
    ("minutes", "worth"), [(0, 30), (4.9, 30), (5, 20), (29.9, 20), (30, 10), (119.9, 10), (120, 0)]
)
def test_fresh_content_gets_up_to_30_points(minutes: float, worth: int) -> None:
    assert points(item(age=timedelta(minutes=minutes)), FOCUS) == worth


def test_a_recent_reference_makes_content_fresh() -> None:
    assert points(item(age=OLD, last_referenced_at=NOW), FOCUS) == 30


@requirement("S4.pruner.task")
@pytest.mark.parametrize(("task", "worth"), [("t", 40), ("d", 25), ("z", 0), (None, 0)])
def test_the_task_at_hand_gives_up_to_40_points(task: str | None, worth: int) -> None:
    assert points(item(task_id=task, age=OLD), FOCUS) == worth


def test_without_a_current_task_content_without_a_task_gets_no_points_for_it() -> None:
    assert points(item(age=OLD), Focus(now=NOW)) == 0


@requirement("S4.pruner.type-points")
@pytest.mark.parametrize(
    ("kind", "worth"),
    [
        ("system_prompt", 20), ("current_task", 20), ("acceptance_criteria", 18),
        ("active_code", 15), ("recent_feedback", 12), ("task_history", 8), ("examples", 5),
        ("anything", 0),
    ],
)  # fmt: skip
def test_the_type_gives_the_points_of_the_table(kind: str, worth: int) -> None:
    assert points(item(kind, age=OLD), FOCUS) == worth


@requirement("S4.pruner.references")
@pytest.mark.parametrize(("count", "worth"), [(0, 0), (1, 2), (4, 8), (5, 10), (50, 10)])
def test_each_reference_gives_two_points_up_to_ten(count: int, worth: int) -> None:
    assert points(item(age=OLD, reference_count=count), FOCUS) == worth


def test_the_points_go_up_to_100() -> None:
    assert points(item("system_prompt", task_id="t", reference_count=5), FOCUS) == 100
