"""S4 "Content Priority Matrix", blocks 3, 4, 5 and 6: the four lists, as code and as configuration."""

from ctxgc import GCConfig
from ctxgc.guard import PriorityMatrix

# -- the blocks

ALWAYS_KEEP = [
    "current_task_description",
    "current_task_acceptance_criteria",
    "system_role_prompt",
    "active_file_being_edited",
    "last_3_user_messages",
    "critical_error_context"
]

KEEP_IF_RELEVANT = [
    "recent_task_history (last 3 tasks)",
    "active_pr_context",
    "dependency_information",
    "current_file_structure",
    "recent_feedback (last 5 items)"
]

KEEP_IF_SPACE = [
    "old_task_history",
    "success_metrics",
    "project_guidelines",
    "example_code_snippets",
    "documentation_links"
]

ALWAYS_PRUNE = [
    "completed_task_details (> 5 tasks ago)",
    "old_error_messages (resolved)",
    "deprecated_context",
    "temporary_debug_info",
    "redundant_information"
]

# -- ours: these lists are the matrix that is used unless another one is configured

lists = {
    "always_keep": ALWAYS_KEEP,
    "keep_if_relevant": KEEP_IF_RELEVANT,
    "keep_if_space": KEEP_IF_SPACE,
    "always_prune": ALWAYS_PRUNE,
}
assert PriorityMatrix(**lists) == PriorityMatrix() == GCConfig().matrix
assert GCConfig(priorities=lists) == GCConfig()

other = GCConfig(priorities={"always_keep": [*ALWAYS_KEEP, {"name": "contract", "kinds": ["law"]}]})
assert other.matrix.always_keep[:-1] == PriorityMatrix().always_keep
assert other.matrix.always_keep[-1].kinds == ("law",)
