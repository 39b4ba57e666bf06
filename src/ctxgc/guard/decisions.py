"""S4's decision tree: what is essential, what is weighed by its score, what goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from ctxgc.core.profiles import POINTS_TYPE
from ctxgc.errors import InputError
from ctxgc.guard.content import ContentItem
from ctxgc.guard.focus import TASK_KINDS, Category, Focus
from ctxgc.guard.priorities import Placed, Priority, PriorityMatrix


class Verdict(StrEnum):
    """What the tree says of a piece of content, the kindest first.

    What is essential because it is relevant has a verdict of its own: where not all fits, it leaves
    after what is only weighed and before what is essential by rule.
    """

    ESSENTIAL = "essential"
    RELEVANT = "relevant"
    WEIGHED = "weighed"
    PRUNED = "pruned"


class Decision(msgspec.Struct, frozen=True):
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


class ScoredContent(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of content with its points and with what the tree says of it."""

    content: ContentItem
    score: int
    decision: Decision


def decide(
    items: Iterable[ContentItem], focus: Focus, matrix: PriorityMatrix
) -> dict[str, Decision]:
    """Return the decision on each item by its id: pins, then the matrix, then the tree.

    Raises:
        InputError: two items have the same id.
    """
    held = list(items)
    placed = matrix.place(held, focus)
    decisions = {item.id: _decide(item, focus, placed.get(item.id)) for item in held}
    if len(decisions) != len(held):
        raise InputError(
            "two pieces of content have the same id", hint="give each its own", field="id"
        )
    return decisions


def points(item: ContentItem, focus: Focus) -> int:
    """Return S4's points: recency 30, the task at hand 40, kind of content 20, references 10."""
    kind = max((int(POINTS_TYPE.get(name, 0)) for name in item.kinds), default=0)
    return _recency(item, focus) + _task(item, focus) + kind + min(10, item.reference_count * 2)


def _recency(item: ContentItem, focus: Focus) -> int:
    minutes = (focus.now - item.last_used_at).total_seconds() / 60
    for limit, worth in ((5, 30), (30, 20), (120, 10)):
        if minutes < limit:
            return worth
    return 0


def _task(item: ContentItem, focus: Focus) -> int:
    if item.task_id is None:
        return 0
    if item.task_id == focus.current_task_id:
        return 40
    return 25 if item.task_id in focus.task_dependencies else 0


def _decide(item: ContentItem, focus: Focus, placed: Placed | None) -> Decision:
    if item.pinned or item.is_essential:
        return Decision(Verdict.ESSENTIAL, "pinned" if item.pinned else "marked as essential")
    if placed is not None:
        return Decision(_by_priority(item, focus, placed.priority), placed.rule)
    return _by_category(item, focus)


def _by_priority(item: ContentItem, focus: Focus, priority: Priority) -> Verdict:
    if priority is Priority.KEEP_IF_RELEVANT and focus.is_relevant(item):
        return Verdict.RELEVANT
    return {
        Priority.ALWAYS_KEEP: Verdict.ESSENTIAL,
        Priority.ALWAYS_PRUNE: Verdict.PRUNED,
    }.get(priority, Verdict.WEIGHED)


def _by_category(item: ContentItem, focus: Focus) -> Decision:
    question, yes, no = _TREE[focus.category(item)]
    return yes if question(focus, item) else no


_TREE: dict[Category, tuple[Callable[[Focus, ContentItem], bool], Decision, Decision]] = {
    Category.CURRENT_TASK: (
        lambda _, item: not item.kinds.isdisjoint(TASK_KINDS),
        Decision(Verdict.ESSENTIAL, "says what the current task is"),
        Decision(Verdict.WEIGHED, "of the current task"),
    ),
    Category.RECENT_HISTORY: (
        Focus.is_relevant,
        Decision(Verdict.RELEVANT, "recent and relevant to the current task"),
        Decision(Verdict.WEIGHED, "recent"),
    ),
    Category.OLD_HISTORY: (
        Focus.was_referenced_recently,
        Decision(Verdict.WEIGHED, "old, but referenced recently"),
        Decision(Verdict.PRUNED, "old and not referenced recently"),
    ),
    Category.SYSTEM_PROMPTS: (
        lambda *_: True,
        Decision(Verdict.ESSENTIAL, "a system prompt"),
        Decision(Verdict.ESSENTIAL, "a system prompt"),
    ),
    Category.EXAMPLES: (
        Focus.is_relevant,
        Decision(Verdict.RELEVANT, "an example that is relevant now"),
        Decision(Verdict.PRUNED, "an example that is not relevant now"),
    ),
}
