"""S4's matrix as configuration: rules by S4's names, with S4's notes, or as objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.config import GCConfig, PriorityMatrix, PriorityRule, load_config, sift_file
from ctxgc.errors import ConfigError


def test_the_matrix_is_configuration_data() -> None:
    matrix = PriorityMatrix.from_dict(
        {"always_keep": [{"name": "contract", "kinds": ["law"], "newest": 1}], "always_prune": []}
    )
    assert matrix.always_keep == (PriorityRule(name="contract", kinds=("law",), newest=1),)
    assert matrix.always_prune == ()
    assert matrix.keep_if_space == PriorityMatrix().keep_if_space
    assert PriorityMatrix.from_dict(matrix.to_dict()) == matrix


def test_the_lists_of_the_seed_are_the_default_matrix() -> None:
    matrix = PriorityMatrix.from_dict(
        {
            "always_keep": [
                "current_task_description", "current_task_acceptance_criteria", "system_role_prompt",
                "active_file_being_edited", "last_3_user_messages", "critical_error_context",
            ],
            "keep_if_relevant": [
                "recent_task_history (last 3 tasks)", "active_pr_context", "dependency_information",
                "current_file_structure", "recent_feedback (last 5 items)",
            ],
            "keep_if_space": [
                "old_task_history", "success_metrics", "project_guidelines", "example_code_snippets",
                "documentation_links",
            ],
            "always_prune": [
                "completed_task_details (> 5 tasks ago)", "old_error_messages (resolved)",
                "deprecated_context", "temporary_debug_info", "redundant_information",
            ],
        }
    )  # fmt: skip
    assert matrix == PriorityMatrix()
    assert matrix.to_dict() == {}


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("last_8_user_messages", {"newest": 8, "kinds": ("user_message",)}),
        ("recent_feedback (last 2 items)", {"newest": 2, "kinds": ("feedback",)}),
        ("recent_task_history (last 1 task)", {"tasks_ago": (1, 1), "kinds": ("task_history",)}),
        (
            "completed_task_details (> 9 tasks ago)",
            {"tasks_ago": (10, None), "kinds": ("task_history",)},
        ),
    ],
)
def test_another_number_in_an_entry_of_the_seed_is_meant(entry: str, rule: dict[str, Any]) -> None:
    name = entry.partition(" ")[0]
    assert PriorityMatrix.from_dict({"always_keep": [entry]}).always_keep == (
        PriorityRule(name=name, **rule),
    )


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (
            {"always_kep": []},
            'unknown list of priorities "always_kep" (did you mean "always_keep"?)',
        ),
        (
            {"always_keep": ["system_prompt_role"]},
            'unknown priority rule "system_prompt_role" (did you mean "system_role_prompt"?)',
        ),
        (
            {"always_keep": [{"nme": "x"}]},
            'unknown field of a priority rule "nme" (did you mean "name"?)',
        ),
        ({"always_keep": 5}, "always_keep must be a list of rules, got int"),
        ({"always_keep": "system_role_prompt"}, "always_keep must be a list of rules, got str"),
        ({"always_keep": [5]}, "a rule is a name or an object, got int"),
        ({"always_keep": [{"name": 5}]}, "rule 5 must be a text, got a whole number"),
        ({"always_keep": ["recent_feedback (lately)"]}, "the note of 'recent_feedback (lately)'"),
        ([], "must be an object with lists, got list"),
    ],
)
def test_a_wrong_matrix_is_refused_with_the_nearest_known_name(data: Any, complaint: str) -> None:
    for refuse in (PriorityMatrix.from_dict, lambda data: GCConfig(priorities=data)):
        with pytest.raises(ConfigError) as caught:
            refuse(data)
        assert complaint in str(caught.value)
        assert caught.value.details["key"] == "priorities"


def test_a_configuration_takes_the_matrix_from_a_file_and_from_code(tmp_path: Path) -> None:
    lists = {"always_keep": ["system_role_prompt", {"name": "contract"}]}
    file = tmp_path / "gc.json"
    file.write_text(json.dumps({"type": "gc_mark_sweep", "priorities": lists}))
    config = load_config(file)
    assert config.matrix == PriorityMatrix.from_dict(lists)
    assert GCConfig(priorities=lists) == GCConfig(priorities=config.matrix)
    assert config.to_dict()["priorities"] == lists
    assert config.replace(batch=5).matrix == config.matrix
    assert GCConfig().matrix == PriorityMatrix()


def test_a_wrong_rule_is_one_of_all_the_mistakes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "gc.json"
    wrong = {"priorities": {"always_keep": ["nobody"]}, "threshold_percent": 500}
    file.write_text(json.dumps(wrong))
    assert len(sift_file(file, env={}).problems) == 2
