"""S4's priority matrix: each of its entries, and the matrix as configuration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctxgc.errors import ConfigError, InputError
from ctxgc.guard import Category, ContentItem, Focus, Priority, PriorityMatrix, PriorityRule
from ctxgc.guard.pruner import Verdict, decide
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOCUS = Focus(
    now=NOW,
    current_task_id="t9",
    task_dependencies=frozenset({"t8"}),
    task_order=tuple(f"t{n}" for n in range(1, 10)),
    active_file="active.py",
)
KEEP, RELEVANT, SPACE, PRUNE = Priority


def item(kind: str = "tool_message", /, **fields: Any) -> ContentItem:
    return ContentItem(**{"id": "x", "type": kind, "timestamp": NOW, "size": 10, **fields})


def placed(content: ContentItem) -> tuple[Priority, str] | None:
    found = PriorityMatrix().place([content], FOCUS).get(content.id)
    return None if found is None else (found.priority, found.rule)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        pytest.param(
            item("current_task", task_id="t9"),
            "current_task_description",
            marks=requirement("S4.keep.current-task-description"),
        ),
        pytest.param(
            item("acceptance_criteria"),
            "current_task_acceptance_criteria",
            marks=requirement("S4.keep.acceptance-criteria"),
        ),
        pytest.param(
            item("system_prompt"),
            "system_role_prompt",
            marks=requirement("S4.keep.system-role-prompt"),
        ),
        pytest.param(
            item(file_path="active.py"),
            "active_file_being_edited",
            marks=requirement("S4.keep.active-file"),
        ),
        pytest.param(
            item("error"),
            "critical_error_context",
            marks=requirement("S4.keep.critical-error-context"),
        ),
    ],
)
def test_what_always_stays_is_essential(content: ContentItem, rule: str) -> None:
    assert placed(content) == (KEEP, rule)
    assert decide([content], FOCUS, PriorityMatrix())["x"].verdict is Verdict.ESSENTIAL


@requirement("S4.keep.last-3-user-messages")
def test_the_last_three_user_messages_always_stay() -> None:
    said = [
        item("user_message", id=f"u{n}", timestamp=NOW + timedelta(minutes=minute))
        for n, minute in enumerate([5, 1, 4, 4, 2])
    ]
    found = PriorityMatrix().place(said, FOCUS)
    assert sorted(found) == ["u0", "u2", "u3"]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        pytest.param(
            "task_history", "recent_task_history", marks=requirement("S4.relevant.recent-tasks")
        ),
        pytest.param(
            "active_pr_context", "active_pr_context", marks=requirement("S4.relevant.active-pr")
        ),
        pytest.param(
            "dependency_information",
            "dependency_information",
            marks=requirement("S4.relevant.dependencies"),
        ),
        pytest.param(
            "current_file_structure",
            "current_file_structure",
            marks=requirement("S4.relevant.file-structure"),
        ),
        pytest.param(
            "recent_feedback",
            "recent_feedback",
            marks=requirement("S4.relevant.recent-feedback"),
        ),
    ],
)
def test_what_stays_if_relevant_is_weighed_if_it_is_not(kind: str, rule: str) -> None:
    near, far = item(kind, task_id="t8"), item(kind, task_id="t7")
    assert placed(near) == placed(far) == (RELEVANT, rule)
    assert decide([near], FOCUS, PriorityMatrix())["x"].verdict is Verdict.RELEVANT
    assert decide([far], FOCUS, PriorityMatrix())["x"].verdict is Verdict.WEIGHED


def test_only_the_last_three_tasks_and_the_last_five_items_of_feedback_are_recent() -> None:
    history = [item("task_history", id=task, task_id=task) for task in FOCUS.task_order[:-1]]
    found = PriorityMatrix().place(history, FOCUS)
    assert {task: found[task].rule for task in found} == {
        "t8": "recent_task_history", "t7": "recent_task_history", "t6": "recent_task_history",
        "t5": "old_task_history", "t4": "old_task_history",
        "t3": "completed_task_details", "t2": "completed_task_details",
        "t1": "completed_task_details",
    }  # fmt: skip
    feedback = [item("feedback", id=f"f{n}") for n in range(7)]
    assert sorted(PriorityMatrix().place(feedback, FOCUS)) == ["f2", "f3", "f4", "f5", "f6"]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        pytest.param("task_history", "old_task_history", marks=requirement("S4.space.old-tasks")),
        pytest.param(
            "success_metrics", "success_metrics", marks=requirement("S4.space.success-metrics")
        ),
        pytest.param(
            "project_guidelines", "project_guidelines", marks=requirement("S4.space.guidelines")
        ),
        pytest.param(
            "example_code_snippets",
            "example_code_snippets",
            marks=requirement("S4.space.example-snippets"),
        ),
        pytest.param(
            "documentation_links",
            "documentation_links",
            marks=requirement("S4.space.documentation-links"),
        ),
    ],
)
def test_what_stays_if_there_is_space_is_weighed_however_old(kind: str, rule: str) -> None:
    content = item(kind, timestamp=NOW - timedelta(days=30))
    assert placed(content) == (SPACE, rule)
    assert decide([content], FOCUS, PriorityMatrix())["x"].verdict is Verdict.WEIGHED


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        pytest.param(
            item("completed_task_details", task_id="t3"),
            "completed_task_details",
            marks=requirement("S4.prune.completed-tasks"),
        ),
        pytest.param(
            item("error", resolved=True),
            "old_error_messages",
            marks=requirement("S4.prune.resolved-errors"),
        ),
        pytest.param(
            item("note", tags=("deprecated",)),
            "deprecated_context",
            marks=requirement("S4.prune.deprecated"),
        ),
        pytest.param(
            item("debug"), "temporary_debug_info", marks=requirement("S4.prune.debug-info")
        ),
        pytest.param(
            item("code", superseded=True),
            "redundant_information",
            marks=requirement("S4.prune.redundant"),
        ),
    ],
)
def test_what_always_goes_is_pruned_however_fresh(content: ContentItem, rule: str) -> None:
    assert placed(content) == (PRUNE, rule)
    assert decide([content], FOCUS, PriorityMatrix())["x"].verdict is Verdict.PRUNED


def test_details_of_a_task_five_tasks_ago_do_not_go_yet() -> None:
    assert placed(item("completed_task_details", task_id="t4")) is None


def test_a_rule_that_keeps_wins_over_one_that_prunes() -> None:
    assert placed(item("system_prompt", tags=("debug",))) == (KEEP, "system_role_prompt")
    superseded = item(file_path="active.py", superseded=True)
    assert placed(superseded) == (PRUNE, "redundant_information")


def test_another_tasks_description_is_not_the_current_ones() -> None:
    assert placed(item("current_task", task_id="t5")) is None


def test_a_pin_wins_over_every_rule() -> None:
    pinned = item("debug", pinned=True)
    assert decide([pinned], FOCUS, PriorityMatrix())["x"].verdict is Verdict.ESSENTIAL


def test_the_matrix_is_configuration_data() -> None:
    matrix = PriorityMatrix.from_dict(
        {"always_keep": [{"name": "contract", "kinds": ["law"], "newest": 1}], "always_prune": []}
    )
    assert matrix.always_keep == (PriorityRule(name="contract", kinds=("law",), newest=1),)
    assert matrix.rules(Priority.ALWAYS_PRUNE) == ()
    assert matrix.keep_if_space == PriorityMatrix().keep_if_space
    assert PriorityMatrix.from_dict(matrix.to_dict()) == matrix


@pytest.mark.parametrize(
    "data", [{"keep": []}, {"always_keep": [{"nme": "x"}]}, {"always_keep": 5}]
)
def test_a_wrong_matrix_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="priorities"):
        PriorityMatrix.from_dict(data)


def test_two_items_with_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="same id"):
        decide([item(), item()], FOCUS, PriorityMatrix())


def test_a_task_is_as_long_ago_as_its_latest_turn_in_the_order() -> None:
    focus = Focus(now=NOW, current_task_id="c", task_order=("a", "b", "a", "c"))
    assert [focus.tasks_ago(task) for task in ("c", "a", "b", "z", None)] == [0, 1, 2, None, None]
    with pytest.raises(InputError, match="recent_minutes"):
        Focus(now=NOW, recent_minutes=-1)


@requirement("S4.tree.categories")
@pytest.mark.parametrize(
    ("content", "category"),
    [
        (item("current_task"), Category.CURRENT_TASK),
        (item(task_id="t9", timestamp=NOW - timedelta(hours=1)), Category.CURRENT_TASK),
        (item(task_id="t9"), Category.RECENT_HISTORY),
        (item(timestamp=NOW - timedelta(minutes=29)), Category.RECENT_HISTORY),
        (item(timestamp=NOW - timedelta(minutes=30)), Category.OLD_HISTORY),
        (item("current_task", task_id="t1", timestamp=NOW - timedelta(1)), Category.OLD_HISTORY),
        (item("system_prompt", timestamp=NOW - timedelta(days=1)), Category.SYSTEM_PROMPTS),
        (item("examples"), Category.EXAMPLES),
        (item("note", tags=("template",)), Category.EXAMPLES),
    ],
)
def test_content_is_current_task_recent_old_system_or_examples(
    content: ContentItem, category: Category
) -> None:
    assert FOCUS.category(content) is category
