"""ContextPruner: S4's pruning by priority, on any pieces of context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import POINTS_TYPE, ContextSegment, rough_tokens, utc_now
from ctxgc.errors import InputError, ShortfallError
from ctxgc.guard.priorities import (
    AGGRESSIVE,
    TASK_KINDS,
    Category,
    ContentItem,
    Count,
    Focus,
    Placed,
    Priority,
    PriorityMatrix,
    categorize,
    item_from_segment,
    items_from_context,
)

# -- S4's decision tree: what is essential, what is weighed by its score, what goes


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


# -- Choosing what stays: essentials, then what is relevant, then the best scores that fit


_KINDNESS = tuple(Verdict)


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Content that lives and dies together: its best score and its kindest verdict count for all."""

    members: tuple[ScoredContent, ...]
    size: int
    score: int
    verdict: Verdict


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen, in order of choice, and the threshold above which all of it was kept."""

    chosen: tuple[ContentItem, ...]
    size: int
    threshold: float


def units(scored: Iterable[ScoredContent]) -> list[Unit]:
    """Return scored content by its bonds, highest score first."""
    groups: dict[tuple[bool, str], list[ScoredContent]] = {}
    for one in scored:
        item = one.content
        groups.setdefault((item.bond is None, item.bond or item.id), []).append(one)
    made = [_unit(tuple(members)) for members in groups.values()]
    return sorted(made, key=lambda unit: -unit.score)


def _unit(members: tuple[ScoredContent, ...]) -> Unit:
    return Unit(
        members=members,
        size=sum(one.content.size for one in members),
        score=max(one.score for one in members),
        verdict=min((one.decision.verdict for one in members), key=_KINDNESS.index),
    )


def select(scored: Iterable[ScoredContent], target: int, floor: float) -> Selection:
    """Return what stays within a target; scores at or below the floor are not weighed at all.

    Raises:
        ShortfallError: the essentials alone do not fit.
    """
    groups = units(scored)
    essential = [unit for unit in groups if unit.verdict is Verdict.ESSENTIAL]
    relevant = [unit for unit in groups if unit.verdict is Verdict.RELEVANT]
    weighed = [u for u in groups if u.verdict is Verdict.WEIGHED and u.score > floor]
    room = target - _size(essential)
    if room < 0:
        raise shortfall([one.content for unit in essential for one in unit.members], target)
    filled = _fill((*relevant, *weighed), room)
    room -= _size(unit for unit in filled if unit.verdict is Verdict.RELEVANT)
    chosen = [one.content for unit in (*essential, *filled) for one in unit.members]
    return Selection(
        chosen=tuple(chosen),
        size=sum(item.size for item in chosen),
        threshold=_rising(weighed, room, floor),
    )


def _size(group: Iterable[Unit]) -> int:
    return sum(unit.size for unit in group)


def _rising(weighed: Sequence[Unit], room: int, floor: float) -> float:
    """Raise the threshold from score to score until all that lies above it fits."""
    threshold = floor
    above = _size(weighed)
    for unit in reversed(weighed):
        if above <= room and unit.score > threshold:
            break
        threshold = unit.score
        above -= unit.size
    return threshold


def _fill(ordered: Sequence[Unit], room: int) -> list[Unit]:
    """Take what fits, best first, passing over what does not."""
    taken = []
    for unit in ordered:
        if unit.size <= room:
            taken.append(unit)
            room -= unit.size
    return taken


def shortfall(items: Sequence[ContentItem], target: int) -> ShortfallError:
    """Return the error that names the essentials that do not fit, largest first."""
    size = sum(item.size for item in items)
    largest = sorted(items, key=lambda item: (-item.size, item.id))
    return ShortfallError(
        f"what must stay takes {size} tokens, {size - target} more than the target of {target}",
        hint="shorten or unpin the largest parts, or use a larger window",
        tokens_short=size - target,
        target=target,
        parts=[{"id": i.id, "type": i.type, "tokens": i.size} for i in largest],
    )


Content = Mapping[Any, Any] | Iterable[ContentItem | ContextSegment]
"""Items, segments, items by kind or category, or texts by kind of content."""

ANY_SCORE = -1.0


class Judged(msgspec.Struct, frozen=True):
    """A piece of content and why it stayed or went."""

    item: ContentItem
    reason: str


class PruneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What stayed and what went, each in the order of the content, with the reasons.

    `threshold` is the score above which everything weighed was kept; `aggressive` says that only the
    last resort was left.
    """

    kept: tuple[Judged, ...]
    pruned: tuple[Judged, ...]
    size: int
    target: int
    threshold: float
    aggressive: bool = False

    @property
    def context(self) -> dict[str, list[ContentItem]]:
        """What stayed, by its type."""
        return _by_type(one.item for one in self.kept)


class ContextPruner:
    """Prunes content down to a share of the window and keeps what is essential.

    Args:
        context_limit: the size of the window in tokens.
        config: `prune_to_percent` of it is the target (70).
        focus: what the work is about; without it there is no task and no file.
        matrix: S4's priorities, or others.
        threshold: scores at or below it never stay; by default every score may.
        count: counts the tokens of plain texts and of segments without a count.
        clock: gives the present time where no focus does.
    """

    def __init__(
        self,
        context_limit: int,
        *,
        config: GCConfig | None = None,
        focus: Focus | None = None,
        matrix: PriorityMatrix | None = None,
        threshold: float = ANY_SCORE,
        count: Count = rough_tokens,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if context_limit <= 0:
            raise InputError(
                f"context_limit cannot be {context_limit}", hint="above zero", field="context_limit"
            )
        config = config if config is not None else GCConfig()
        self.context_limit = context_limit
        self.target_size = int(context_limit * config.prune_to_percent / 100)
        self.matrix = matrix if matrix is not None else PriorityMatrix()
        self.threshold = threshold
        self.focus = focus
        self._count = count
        self._clock = clock

    def prune(self, context: Content, target: int | None = None) -> PruneResult:
        """Return what of the content stays within the target; content that fits stays whole.

        Raises:
            ShortfallError: not even what the last resort keeps fits; `details["parts"]` names it.
        """
        items, target = self._items(context), self._target(target)
        size = self.calculate_size(items)
        if size <= target:
            kept = tuple(Judged(item, "the context fits") for item in items)
            return PruneResult(
                kept=kept, pruned=(), size=size, target=target, threshold=self.threshold
            )
        scored = self.score_content(self.categorize_content(items))
        try:
            selection = select(scored, target, self.threshold)
        except ShortfallError:
            return self.aggressive_prune(items, target)
        chosen = {item.id for item in selection.chosen}
        reasons = {one.content.id: _why(one, one.content.id in chosen) for one in scored}
        return _result(items, chosen, reasons, target, threshold=selection.threshold)

    def aggressive_prune(self, context: Content, target: int | None = None) -> PruneResult:
        """Return S4's last resort: pins, system prompt, task, active file, last request, last error.

        Raises:
            ShortfallError: these alone do not fit.
        """
        items, target = self._items(context), self._target(target)
        named = {item.id: "pinned" for item in items if item.pinned}
        for rule in AGGRESSIVE:
            for item in rule.find(items, self._focus()):
                named.setdefault(item.id, rule.name)
        bonds = {item.bond: "bonded to what stays" for item in items if item.id in named}
        bonds.pop(None, None)
        reasons = {
            item.id: named.get(item.id) or bonds.get(item.bond, "not an absolute essential")
            for item in items
        }
        chosen = {item.id for item in items if item.id in named or item.bond in bonds}
        kept = [item for item in items if item.id in chosen]
        if self.calculate_size(kept) > target:
            raise shortfall(kept, target)
        return _result(items, chosen, reasons, target, threshold=100, aggressive=True)

    def categorize_content(self, context: Content) -> dict[Category, list[ContentItem]]:
        """Return the content by the categories of S4's second chart."""
        return categorize(self._items(context), self._focus())

    def score_content(self, content: Content) -> list[ScoredContent]:
        """Return the content with its points (0 to 100), highest first, newer before older."""
        items, focus = self._items(content), self._focus()
        decisions = decide(items, focus, self.matrix)
        scored = [
            ScoredContent(content=item, score=points(item, focus), decision=decisions[item.id])
            for item in items
        ]
        return sorted(scored, key=lambda one: (one.score, one.content.timestamp), reverse=True)

    def select_content(
        self, scored: Iterable[ScoredContent], target_size: int | None = None
    ) -> list[ContentItem]:
        """Return what stays: all essentials, then the best scores that fit.

        Raises:
            ShortfallError: the essentials alone do not fit.
        """
        return list(select(scored, self._target(target_size), self.threshold).chosen)

    def build_context(self, selected: Iterable[ContentItem]) -> dict[str, list[ContentItem]]:
        """Return content by its type."""
        return _by_type(selected)

    def calculate_size(self, context: Content) -> int:
        """Return the tokens of content."""
        return sum(item.size for item in self._items(context))

    def _focus(self) -> Focus:
        return self.focus if self.focus is not None else Focus(now=self._clock())

    def _target(self, target: int | None) -> int:
        if target is not None and target < 0:
            raise InputError(f"target cannot be {target}", hint="zero or more", field="target")
        return self.target_size if target is None else target

    def _items(self, context: Content) -> list[ContentItem]:
        if isinstance(context, Mapping):
            parts = [part for value in context.values() for part in _listed(value)]
            if any(not isinstance(part, (ContentItem, ContextSegment)) for part in parts):
                return items_from_context(context, self._focus().now, self._count)
            return self._items(parts)
        return [
            item_from_segment(item, self._count) if isinstance(item, ContextSegment) else item
            for item in context
        ]


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _by_type(items: Iterable[ContentItem]) -> dict[str, list[ContentItem]]:
    context: dict[str, list[ContentItem]] = {}
    for item in items:
        context.setdefault(item.type, []).append(item)
    return context


def _why(one: ScoredContent, kept: bool) -> str:
    verdict, reason = one.decision.verdict, one.decision.reason
    if verdict is Verdict.PRUNED:
        return "bonded to what stays" if kept else reason
    if verdict is Verdict.ESSENTIAL or (verdict is Verdict.RELEVANT and kept):
        return reason
    return f"{reason}: {one.score} points, {'fits' if kept else 'no room left'}"


def _result(
    items: list[ContentItem],
    chosen: set[str],
    reasons: dict[str, str],
    target: int,
    *,
    threshold: float,
    aggressive: bool = False,
) -> PruneResult:
    kept = tuple(Judged(item, reasons[item.id]) for item in items if item.id in chosen)
    return PruneResult(
        kept=kept,
        pruned=tuple(Judged(item, reasons[item.id]) for item in items if item.id not in chosen),
        size=sum(one.item.size for one in kept),
        target=target,
        threshold=threshold,
        aggressive=aggressive,
    )
