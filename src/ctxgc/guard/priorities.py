"""S4's priority matrix as data: which content always stays, may stay, always goes.

A rule names kinds of content and conditions on them. The first rule that holds decides; rules that
keep come before rules that prune, so that a doubt is settled in favour of the content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any

import msgspec

from ctxgc.core import ContextSegment, checked_time, is_request, rough_tokens
from ctxgc.errors import ConfigError, InputError

# -- Content items


Count = Callable[[str], int]


class ContentItem(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of context.

    Args:
        id: names it in results.
        type: what kind of content it is, such as `system_prompt` or `task_history`.
        size: its tokens; counted roughly from the text when left out.
        timestamp: when it came in.
        last_referenced_at: when something last referred to it, if that is known.
        task_id: the task that it belongs to.
        reference_count: how many others refer to it.
        is_essential: whether it is to stay as long as all essentials fit.
        pinned: whether it may never leave.
        resolved: whether the error that it reports is resolved.
        superseded: whether later content says the same anew.
        bond: pieces with the same bond stay or go together.
        tags: further kinds of content that it is.
    """

    id: str
    type: str
    timestamp: datetime
    text: str = ""
    size: int = -1
    last_referenced_at: datetime | None = None
    task_id: str | None = None
    reference_count: int = 0
    is_essential: bool = False
    pinned: bool = False
    resolved: bool = False
    superseded: bool = False
    file_path: str | None = None
    bond: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked_time("timestamp", self.timestamp)
        if self.last_referenced_at is not None:
            checked_time("last_referenced_at", self.last_referenced_at)
        if self.size < -1 or self.reference_count < 0:
            field = "reference_count" if self.reference_count < 0 else "size"
            raise InputError(
                f"content '{self.id}': {field} cannot be {getattr(self, field)}",
                hint="zero or more",
                field=field,
            )
        if self.size == -1:
            msgspec.structs.force_setattr(self, "size", rough_tokens(self.text))

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds of content that it is."""
        return frozenset((self.type, *self.tags))

    @property
    def last_used_at(self) -> datetime:
        """When it came in or was last referred to, whichever is later."""
        return max(self.timestamp, self.last_referenced_at or self.timestamp)


def item_from_segment(segment: ContextSegment, count: Count = rough_tokens) -> ContentItem:
    """Return the item of a segment; locked ones are essential."""
    touched = segment.last_touched_at > segment.created_at
    return ContentItem(
        id=segment.segment_id,
        type=_type_of(segment),
        text=segment.text,
        size=segment.tokens if segment.tokens is not None else count(segment.text),
        timestamp=segment.created_at,
        last_referenced_at=segment.last_touched_at if touched else None,
        task_id=segment.task_id,
        reference_count=segment.refcount,
        is_essential=segment.policy == "locked",
        pinned=segment.pinned,
        resolved=segment.failed and segment.superseded_by is not None,
        superseded=segment.superseded_by is not None,
        file_path=segment.file_path,
        bond=segment.bond_id,
        tags=segment.tags,
    )


def _type_of(segment: ContextSegment) -> str:
    if segment.role == "system" or segment.source == "system":
        return "system_prompt"
    if is_request(segment):
        return "user_message"
    if segment.failed:
        return "error"
    if segment.part in ("tool_call", "tool_result", "thinking", "media"):
        return segment.part  # a tool result in a user message is not from the user
    return f"{segment.role or 'agent'}_{segment.type}"


_KEYS = {"messages": "user_message", "current_file": "active_file", "last_error": "error"}


def items_from_context(
    context: Mapping[str, Any], now: datetime, count: Count = rough_tokens
) -> list[ContentItem]:
    """Return the items of a context as a mapping from kinds of content to texts.

    A value is a text, a message (`{"role", "content"}`), a list of them, or None; `messages` holds the
    conversation. All of it is taken as fresh.
    """
    items: list[ContentItem] = []
    for key, value in context.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        for number, entry in enumerate(values):
            if entry is not None:
                items.append(_from_entry(key, f"{key}-{number}", entry, now, count))
    return items


def _from_entry(key: str, name: str, entry: Any, now: datetime, count: Count) -> ContentItem:
    kind, text = _KEYS.get(key, key), entry
    if isinstance(entry, Mapping):
        kind = f"{entry['role']}_message" if "role" in entry else kind
        text = entry.get("content", "")
    if not isinstance(text, str):
        raise InputError(
            f"the context's '{key}' cannot be {type(text).__name__}",
            hint="give a text, a message with text, or a list of them",
            field=key,
        )
    return ContentItem(id=name, type=kind, text=text, size=count(text), timestamp=now)


# -- Focus: what the work is about now


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
        current_task_id: the current task.
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
        """Return whether an item shows the file being edited as it is now."""
        same = self.active_file is not None and item.file_path == self.active_file
        return same and not item.superseded

    def is_relevant(self, item: ContentItem) -> bool:
        """Return whether an item concerns the current task, one it depends on, or the active file."""
        if item.task_id is not None and item.task_id == self.current_task_id:
            return True
        return item.task_id in self.task_dependencies or self.in_active_file(item)

    def is_recent(self, moment: datetime) -> bool:
        """Return whether a moment lies within the recent minutes."""
        return (self.now - moment).total_seconds() < self.recent_minutes * 60

    def was_referenced_recently(self, item: ContentItem) -> bool:
        """Return whether something referred to an item of late; where no time is known, ever."""
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
