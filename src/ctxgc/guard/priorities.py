"""S4's priority matrix as data: which content always stays, may stay, always goes.

A rule names kinds of content and conditions on them. The first rule that holds decides; rules that
keep come before rules that prune, so that a doubt is settled in favour of the content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from ctxgc.errors import ConfigError
from ctxgc.guard.content import ContentItem
from ctxgc.guard.focus import Focus


class Priority(IntEnum):
    """How much content is worth, from S4's first priority to its last."""

    ALWAYS_KEEP = 1
    KEEP_IF_RELEVANT = 2
    KEEP_IF_SPACE = 3
    ALWAYS_PRUNE = 4


class PriorityRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the matrix. It holds for content that meets all its conditions.

    Args:
        name: S4's name of the entry; content of that kind is always meant.
        kinds: further kinds of content that are meant.
        active_file: the file being worked on is meant too, unless superseded.
        superseded: superseded content is meant too.
        resolved: only content whose error is (not) resolved.
        tasks_ago: only content of tasks from so many to so many ago (None: no end); the current
            task is 0 ago. Content of no known task is outside every span.
        current_task: not content of another task than the current one.
        newest: only so many of the newest that meet the other conditions.
    """

    name: str
    kinds: tuple[str, ...] = ()
    active_file: bool = False
    superseded: bool = False
    resolved: bool | None = None
    tasks_ago: tuple[int, int | None] | None = None
    current_task: bool = False
    newest: int | None = None

    def find(self, items: Sequence[ContentItem], focus: Focus) -> list[ContentItem]:
        """Return the items that the rule holds for, in their order."""
        found = [item for item in items if self._means(item, focus) and self._allows(item, focus)]
        if self.newest is None:
            return found
        latest = sorted(enumerate(found), key=lambda pair: (pair[1].timestamp, pair[0]))
        return [item for _, item in latest[max(0, len(latest) - self.newest) :]]

    def _means(self, item: ContentItem, focus: Focus) -> bool:
        return (
            self.name in item.kinds
            or not item.kinds.isdisjoint(self.kinds)
            or (self.active_file and focus.in_active_file(item))
            or (self.superseded and item.superseded)
        )

    def _allows(self, item: ContentItem, focus: Focus) -> bool:
        if self.resolved is not None and item.resolved != self.resolved:
            return False
        if self.current_task and item.task_id not in (None, focus.current_task_id):
            return False
        return self.tasks_ago is None or _within(focus.tasks_ago(item.task_id), self.tasks_ago)


def _within(distance: int | None, span: tuple[int, int | None]) -> bool:
    first, last = span
    return distance is not None and first <= distance and (last is None or distance <= last)


ALWAYS_KEEP: tuple[PriorityRule, ...] = (
    PriorityRule(name="current_task_description", kinds=("current_task",), current_task=True),
    PriorityRule(
        name="current_task_acceptance_criteria", kinds=("acceptance_criteria",), current_task=True
    ),
    PriorityRule(name="system_role_prompt", kinds=("system_prompt",)),
    PriorityRule(name="active_file_being_edited", kinds=("active_file",), active_file=True),
    PriorityRule(name="last_3_user_messages", kinds=("user_message",), newest=3),
    PriorityRule(name="critical_error_context", kinds=("error",), resolved=False),
)
KEEP_IF_RELEVANT: tuple[PriorityRule, ...] = (
    PriorityRule(name="recent_task_history", kinds=("task_history",), tasks_ago=(1, 3)),
    PriorityRule(name="active_pr_context"),
    PriorityRule(name="dependency_information"),
    PriorityRule(name="current_file_structure"),
    PriorityRule(name="recent_feedback", kinds=("feedback",), newest=5),
)
KEEP_IF_SPACE: tuple[PriorityRule, ...] = (
    PriorityRule(name="old_task_history", kinds=("task_history",)),
    PriorityRule(name="success_metrics"),
    PriorityRule(name="project_guidelines"),
    PriorityRule(name="example_code_snippets"),
    PriorityRule(name="documentation_links"),
)
ALWAYS_PRUNE: tuple[PriorityRule, ...] = (
    PriorityRule(name="completed_task_details", kinds=("task_history",), tasks_ago=(6, None)),
    PriorityRule(name="old_error_messages", kinds=("error",), resolved=True),
    PriorityRule(name="deprecated_context", kinds=("deprecated",)),
    PriorityRule(name="temporary_debug_info", kinds=("debug",)),
    PriorityRule(name="redundant_information", kinds=("redundant",), superseded=True),
)

AGGRESSIVE: tuple[PriorityRule, ...] = (
    PriorityRule(name="system_prompt", kinds=("system_role_prompt",)),
    PriorityRule(name="current_task", kinds=("current_task_description",), current_task=True),
    PriorityRule(
        name="current_file", kinds=("active_file", "active_file_being_edited"), active_file=True
    ),
    PriorityRule(name="last_user_message", kinds=("user_message",), newest=1),
    PriorityRule(
        name="error_context", kinds=("error", "critical_error_context"), resolved=False, newest=1
    ),
)
"""What S4's last resort keeps; of these, what is not there is not missed."""

_ORDER = (
    Priority.ALWAYS_KEEP,
    Priority.ALWAYS_PRUNE,
    Priority.KEEP_IF_RELEVANT,
    Priority.KEEP_IF_SPACE,
)


class Placed(msgspec.Struct, frozen=True):
    """The priority of an item and the entry of the matrix that gives it."""

    priority: Priority
    rule: str


class PriorityMatrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The four lists of the matrix; each may be replaced."""

    always_keep: tuple[PriorityRule, ...] = ALWAYS_KEEP
    keep_if_relevant: tuple[PriorityRule, ...] = KEEP_IF_RELEVANT
    keep_if_space: tuple[PriorityRule, ...] = KEEP_IF_SPACE
    always_prune: tuple[PriorityRule, ...] = ALWAYS_PRUNE

    def rules(self, priority: Priority) -> tuple[PriorityRule, ...]:
        """Return the rules of one priority."""
        rules: tuple[PriorityRule, ...] = getattr(self, priority.name.lower())
        return rules

    def place(self, items: Iterable[ContentItem], focus: Focus) -> dict[str, Placed]:
        """Return the priority of each item that a rule holds for, by its id."""
        held = list(items)
        placed: dict[str, Placed] = {}
        for priority in _ORDER:
            for rule in self.rules(priority):
                for item in rule.find(held, focus):
                    placed.setdefault(item.id, Placed(priority, rule.name))
        return placed

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PriorityMatrix:
        """Return the matrix that JSON values describe; lists that are left out are S4's.

        Raises:
            ConfigError: a key is unknown, or a value of the wrong kind.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            known = ", ".join(cls.__struct_fields__)
            raise ConfigError(f"priorities: {error}", hint=f"the lists are {known}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix as JSON values."""
        return dict(msgspec.to_builtins(self))
