"""Focus: what the work is about now, and how near a piece of content is to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from ctxgc.core.segment import checked_time
from ctxgc.errors import InputError
from ctxgc.guard.content import ContentItem


class Category(StrEnum):
    """What content is, in the words of S4's second chart."""

    CURRENT_TASK = "current_task"
    RECENT_HISTORY = "recent_history"
    OLD_HISTORY = "old_history"
    SYSTEM_PROMPTS = "system_prompts"
    EXAMPLES = "examples"


SYSTEM_KINDS = frozenset({"system_prompt", "system_role_prompt"})
EXAMPLE_KINDS = frozenset({"examples", "example", "templates", "template"})
TASK_KINDS = frozenset(
    {
        "current_task", "current_task_description",
        "acceptance_criteria", "current_task_acceptance_criteria",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Focus:
    """What the work is about now.

    Args:
        now: the present time.
        current_task_id: the task at hand.
        task_dependencies: the tasks that it depends on.
        task_order: the tasks in the order in which they were begun, the current one included or not.
        active_file: the file being edited.
        recent_minutes: younger content is recent, older is old.
    """

    now: datetime
    current_task_id: str | None = None
    task_dependencies: frozenset[str] = frozenset()
    task_order: tuple[str, ...] = ()
    active_file: str | None = None
    recent_minutes: float = 30.0

    def __post_init__(self) -> None:
        checked_time("now", self.now)
        if self.recent_minutes < 0:
            raise InputError(
                f"recent_minutes cannot be {self.recent_minutes}",
                hint="zero or more",
                field="recent_minutes",
            )

    def tasks_ago(self, task_id: str | None) -> int | None:
        """Return how many tasks ago one was the current one; None if that is not known."""
        return self._distances.get(task_id)

    @cached_property
    def _distances(self) -> dict[str | None, int]:
        earlier = [task for task in self.task_order if task != self.current_task_id]
        latest = dict.fromkeys(reversed(earlier))
        distances: dict[str | None, int] = {task: n for n, task in enumerate(latest, start=1)}
        if self.current_task_id is not None:
            distances[self.current_task_id] = 0
        return distances

    def in_active_file(self, item: ContentItem) -> bool:
        """Tell whether an item shows the file being edited as it is now."""
        same = self.active_file is not None and item.file_path == self.active_file
        return same and not item.superseded

    def is_relevant(self, item: ContentItem) -> bool:
        """Tell whether an item concerns the current task, one it depends on, or the active file."""
        if item.task_id is not None and item.task_id == self.current_task_id:
            return True
        return item.task_id in self.task_dependencies or self.in_active_file(item)

    def is_recent(self, moment: datetime) -> bool:
        """Tell whether a moment lies within the recent minutes."""
        return (self.now - moment).total_seconds() < self.recent_minutes * 60

    def was_referenced_recently(self, item: ContentItem) -> bool:
        """Tell whether something referred to an item of late; where no time is known, ever."""
        if item.last_referenced_at is None:
            return item.reference_count > 0
        return self.is_recent(item.last_referenced_at)

    def category(self, item: ContentItem) -> Category:
        """Return the category of an item.

        Recent content of the current task is recent history; older content of it is not old history
        but information about the task.
        """
        if item.kinds & SYSTEM_KINDS:
            return Category.SYSTEM_PROMPTS
        if item.kinds & EXAMPLE_KINDS:
            return Category.EXAMPLES
        if item.kinds & TASK_KINDS and item.task_id in (None, self.current_task_id):
            return Category.CURRENT_TASK
        if self.is_recent(item.timestamp):
            return Category.RECENT_HISTORY
        own = item.task_id is not None and item.task_id == self.current_task_id
        return Category.CURRENT_TASK if own else Category.OLD_HISTORY


def categorize(items: Iterable[ContentItem], focus: Focus) -> dict[Category, list[ContentItem]]:
    """Return the items by category; every category is there, if need be empty."""
    groups: dict[Category, list[ContentItem]] = {category: [] for category in Category}
    for item in items:
        groups[focus.category(item)].append(item)
    return groups
