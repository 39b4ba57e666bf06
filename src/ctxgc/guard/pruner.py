"""ContextPruner: S4's pruning by priority, on any pieces of context."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core.admission import rough_tokens
from ctxgc.core.segment import ContextSegment, utc_now
from ctxgc.errors import InputError, ShortfallError
from ctxgc.guard.content import ContentItem, Count, item_from_segment, items_from_context
from ctxgc.guard.decisions import ScoredContent, Verdict, decide, points
from ctxgc.guard.focus import Category, Focus, categorize
from ctxgc.guard.priorities import AGGRESSIVE, PriorityMatrix
from ctxgc.guard.selection import select, shortfall

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
