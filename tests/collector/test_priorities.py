"""S4's priorities: each entry of the matrix, each branch of the tree, and the rank of a whole heap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ctxgc.collector import Category, Focus, Priority, Ranked, rank, rank_heap
from ctxgc.config import GCConfig, PriorityMatrix
from ctxgc.core import ContextSegment, GCState, Heap
from ctxgc.errors import InputError
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


BARE = PriorityMatrix(always_keep=(), keep_if_relevant=(), keep_if_space=(), always_prune=())
OLD = timedelta(hours=3)


def content(
    kind: str = "tool_message", /, age: timedelta = timedelta(0), **fields: Any
) -> ContextSegment:
    """A segment of this kind, in S4's words; `resolved` and `superseded` say what later content did."""
    resolved, superseded = fields.pop("resolved", False), fields.pop("superseded", False)
    defaults: dict[str, Any] = {
        "segment_id": "x", "text": "", "type": "note", "tokens": 10, "created_at": NOW - age,
        "failed": resolved, "superseded_by": "later" if resolved or superseded else None,
    }  # fmt: skip
    tags = (kind, *fields.pop("tags", ()))
    return ContextSegment(**{**defaults, **fields, "tags": tags})


def placed(segment: ContextSegment) -> Ranked:
    return rank([segment], FOCUS)[segment.segment_id]


def branch(segment: ContextSegment) -> Priority:
    """What the tree says where no rule of the matrix does."""
    return rank([segment], FOCUS, BARE)[segment.segment_id].priority


@pytest.mark.parametrize(
    ("segment", "rule"),
    [
        pytest.param(
            content("current_task", task_id="t9"),
            "current_task_description",
            marks=requirement("S4.keep.current-task-description"),
        ),
        pytest.param(
            content("acceptance_criteria"),
            "current_task_acceptance_criteria",
            marks=requirement("S4.keep.acceptance-criteria"),
        ),
        pytest.param(
            content("system_prompt"),
            "system_role_prompt",
            marks=requirement("S4.keep.system-role-prompt"),
        ),
        pytest.param(
            content(file_path="active.py"),
            "active_file_being_edited",
            marks=requirement("S4.keep.active-file"),
        ),
        pytest.param(
            content("error"),
            "critical_error_context",
            marks=requirement("S4.keep.critical-error-context"),
        ),
    ],
)
def test_what_always_stays_is_essential(segment: ContextSegment, rule: str) -> None:
    assert placed(segment) == (KEEP, rule)


@requirement("S4.keep.last-3-user-messages")
def test_the_last_three_user_messages_always_stay() -> None:
    said = [
        content("user_message", segment_id=f"u{n}", created_at=NOW + timedelta(minutes=minute))
        for n, minute in enumerate([5, 1, 4, 4, 2])
    ]
    found = rank(said, FOCUS)
    kept = [name for name in found if found[name] == (KEEP, "last_3_user_messages")]
    assert sorted(kept) == ["u0", "u2", "u3"]


def test_of_equally_old_messages_the_last_are_the_newest_and_their_parts_count_as_one() -> None:
    said = [
        content("user_message", segment_id=f"u{n}{part}", message_id=f"m{n}")
        for n in range(5)
        for part in "ab"
    ]
    found = rank(said, FOCUS)
    kept = [name for name in found if found[name].priority is KEEP]
    assert sorted(kept) == ["u2a", "u2b", "u3a", "u3b", "u4a", "u4b"]


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
def test_what_stays_if_relevant_stays_if_there_is_space_when_it_is_not(
    kind: str, rule: str
) -> None:
    assert placed(content(kind, task_id="t8")) == (RELEVANT, rule)
    assert placed(content(kind, task_id="t7")) == (SPACE, rule)


def test_only_the_last_three_tasks_and_the_last_five_items_of_feedback_are_recent() -> None:
    history = [
        content("task_history", segment_id=task, task_id=task) for task in FOCUS.task_order[:-1]
    ]
    found = rank(history, FOCUS)
    assert {task: found[task].rule for task in found} == {
        "t8": "recent_task_history", "t7": "recent_task_history", "t6": "recent_task_history",
        "t5": "old_task_history", "t4": "old_task_history",
        "t3": "completed_task_details", "t2": "completed_task_details",
        "t1": "completed_task_details",
    }  # fmt: skip
    rules = rank([content("feedback", segment_id=f"f{n}") for n in range(7)], FOCUS)
    recent = [name for name in rules if rules[name].rule == "recent_feedback"]
    assert sorted(recent) == ["f2", "f3", "f4", "f5", "f6"]


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
def test_what_stays_if_there_is_space_does_so_however_old(kind: str, rule: str) -> None:
    assert placed(content(kind, age=timedelta(days=30))) == (SPACE, rule)


@pytest.mark.parametrize(
    ("segment", "rule"),
    [
        pytest.param(
            content("completed_task_details", task_id="t3"),
            "completed_task_details",
            marks=requirement("S4.prune.completed-tasks"),
        ),
        pytest.param(
            content("error", resolved=True),
            "old_error_messages",
            marks=requirement("S4.prune.resolved-errors"),
        ),
        pytest.param(
            content("note", tags=("deprecated",)),
            "deprecated_context",
            marks=requirement("S4.prune.deprecated"),
        ),
        pytest.param(
            content("debug"), "temporary_debug_info", marks=requirement("S4.prune.debug-info")
        ),
        pytest.param(
            content("code", superseded=True),
            "redundant_information",
            marks=requirement("S4.prune.redundant"),
        ),
    ],
)
def test_what_always_goes_is_pruned_however_fresh(segment: ContextSegment, rule: str) -> None:
    assert placed(segment) == (PRUNE, rule)


def test_details_of_a_task_five_tasks_ago_do_not_go_yet() -> None:
    assert placed(content("completed_task_details", task_id="t4")) == (SPACE, "old_task_history")


def test_what_belongs_to_another_task_is_history_unless_the_current_one_needs_it() -> None:
    assert placed(content(task_id="t7", age=OLD)) == (SPACE, "recent_task_history")
    assert placed(content(task_id="t2")) == (PRUNE, "completed_task_details")
    needed = Focus(now=NOW, current_task_id="t9", task_dependencies=frozenset({"t2"}))
    assert rank([content(task_id="t2")], needed)["x"] == (
        RELEVANT,
        "recent and relevant to the current task",
    )


def test_a_rule_that_keeps_wins_over_one_that_prunes() -> None:
    assert placed(content("system_prompt", tags=("debug",))) == (KEEP, "system_role_prompt")
    superseded = content(file_path="active.py", superseded=True)
    assert placed(superseded) == (PRUNE, "redundant_information")


def test_another_tasks_description_is_not_the_current_ones() -> None:
    assert placed(content("current_task", task_id="t5")) == (SPACE, "old_task_history")


def test_pins_and_locks_win_over_every_rule_that_does_not_keep() -> None:
    assert placed(content("debug", pinned=True)) == (KEEP, "pinned")
    assert placed(content("debug", policy="locked")) == (KEEP, "locked")
    assert placed(content("system_prompt", policy="locked")) == (KEEP, "system_role_prompt")


def test_a_task_is_as_long_ago_as_its_latest_turn_in_the_order() -> None:
    focus = Focus(now=NOW, current_task_id="c", task_order=("a", "b", "a", "c"))
    assert [focus.tasks_ago(task) for task in ("c", "a", "b", "z", None)] == [0, 1, 2, None, None]
    with pytest.raises(InputError, match="recent_minutes"):
        Focus(now=NOW, recent_minutes=-1)


@requirement("S4.tree.categories")
@pytest.mark.parametrize(
    ("segment", "category"),
    [
        (content("current_task"), Category.CURRENT_TASK),
        (content(task_id="t9", age=timedelta(hours=1)), Category.CURRENT_TASK),
        (content(task_id="t9"), Category.RECENT_HISTORY),
        (content(age=timedelta(minutes=29)), Category.RECENT_HISTORY),
        (content(age=timedelta(minutes=30)), Category.OLD_HISTORY),
        (content("current_task", task_id="t1", age=timedelta(1)), Category.OLD_HISTORY),
        (content("system_prompt", age=timedelta(days=1)), Category.SYSTEM_PROMPTS),
        (content("examples"), Category.EXAMPLES),
        (content("note", tags=("template",)), Category.EXAMPLES),
    ],
)
def test_content_is_current_task_recent_old_system_or_examples(
    segment: ContextSegment, category: Category
) -> None:
    assert FOCUS.category(segment) is category


# -- the tree


@requirement("S4.tree.current-task")
def test_current_task_content_that_must_stay_is_essential_and_the_rest_is_weighed() -> None:
    assert branch(content("current_task")) is KEEP
    assert branch(content(task_id="t9", age=OLD, policy="locked")) is KEEP
    assert branch(content(task_id="t9", age=OLD)) is SPACE


@requirement("S4.tree.recent")
def test_recent_content_of_the_current_task_is_relevant_and_the_rest_is_weighed() -> None:
    assert branch(content(task_id="t9")) is RELEVANT
    assert branch(content(task_id="t8")) is RELEVANT
    assert branch(content(file_path="active.py")) is RELEVANT
    assert branch(content(task_id="z")) is SPACE


@requirement("S4.tree.old")
def test_old_content_is_weighed_when_referenced_recently_and_else_pruned() -> None:
    recently = NOW - timedelta(minutes=1)
    assert branch(content(age=OLD, last_touched_at=recently)) is SPACE
    assert branch(content(age=OLD, refcount=1)) is SPACE
    assert branch(content(age=OLD, refcount=9, last_touched_at=NOW - OLD / 2)) is PRUNE
    assert branch(content(age=OLD)) is PRUNE


@requirement("S4.tree.system")
def test_system_prompts_are_essential() -> None:
    assert branch(content("system_prompt", age=OLD)) is KEEP


@requirement("S4.tree.examples")
def test_examples_are_relevant_or_pruned() -> None:
    assert branch(content("examples", task_id="t9")) is RELEVANT
    assert branch(content("examples")) is PRUNE


# -- a heap of provider messages


def said(name: str, role: Any, age: timedelta = OLD, **fields: Any) -> ContextSegment:
    defaults: dict[str, Any] = {"text": name, "type": "message", "tokens": 5, "message_id": name}
    return ContextSegment(
        segment_id=name, role=role, created_at=NOW - age, **{**defaults, **fields}
    )


def heap_of(*segments: ContextSegment) -> Heap:
    heap = Heap()
    heap.add_all(segments)
    return heap


def test_every_working_segment_of_a_heap_has_its_priority_and_the_rule_that_gives_it() -> None:
    heap = heap_of(
        said("system", "system", source="system", policy="locked"),
        said("first", "user"),
        *(said(f"more{n}", "user") for n in range(4)),
        said("answer", "assistant"),
        said("file", "tool", file_path="active.py", part="tool_result"),
        said("failed", "tool", failed=True, part="tool_result"),
        said("fresh", "assistant", age=timedelta(0)),
        said("gone", "assistant"),
    )
    heap.stash("gone")
    state = GCState(heap=heap, now=NOW, active_file="active.py")
    assert rank_heap(state) == {
        "system": (KEEP, "system_role_prompt"),
        "first": (KEEP, "current_task_description"),
        "more0": (PRUNE, "old and not referenced recently"),
        "more1": (KEEP, "last_3_user_messages"),
        "more2": (KEEP, "last_3_user_messages"),
        "more3": (KEEP, "last_3_user_messages"),
        "answer": (PRUNE, "old and not referenced recently"),
        "file": (KEEP, "active_file_being_edited"),
        "failed": (KEEP, "critical_error_context"),
        "fresh": (SPACE, "recent"),
    }


def test_the_request_that_began_a_task_says_what_the_task_is() -> None:
    heap = heap_of(
        *(said(f"{task}{n}", "user", task_id=task) for task in ("a", "b") for n in range(5)),
    )
    found = rank_heap(GCState(heap=heap, now=NOW, current_task_id="b"))
    assert found["b0"] == (KEEP, "current_task_description")
    assert found["a0"] == (SPACE, "recent_task_history")


def test_tasks_are_as_long_ago_as_the_heap_says_also_when_what_they_said_was_stashed() -> None:
    heap = heap_of(*(said(f"s{n}", "assistant", task_id=f"t{n}") for n in range(8)))
    for n in range(2, 6):
        heap.stash(f"s{n}")
    found = rank_heap(GCState(heap=heap, now=NOW, current_task_id="t7"))
    assert found["s1"] == (PRUNE, "completed_task_details")
    assert found["s6"] == (SPACE, "recent_task_history")


def test_the_matrix_of_a_configuration_decides() -> None:
    config = GCConfig(
        priorities={"always_prune": [{"name": "chatter", "kinds": ["assistant_message"]}]}
    )
    heap = heap_of(said("said", "assistant", age=timedelta(0)))
    assert rank_heap(GCState(heap=heap, now=NOW), config.matrix) == {"said": (PRUNE, "chatter")}
