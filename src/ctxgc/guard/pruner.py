"""ContextPruner: S4's pruning by priority, on any context; the collector decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.collector import Category, Focus, Weighed, essentials, plan_by_priority, weigh
from ctxgc.config import LAST_RESORT, GCConfig, PriorityMatrix
from ctxgc.core import KeepScore, ScoreContext, rough_tokens, utc_now
from ctxgc.errors import InputError, ShortfallError
from ctxgc.guard.content import Content, ContentItem, Count, items_of

ANY_SCORE = -1.0


class ScoredContent(msgspec.Struct, frozen=True):
    """A piece of content with its points."""

    content: ContentItem
    score: int


class Judged(msgspec.Struct, frozen=True):
    """A piece of content and why it stayed or went."""

    item: ContentItem
    reason: str


class PruneResult(dict[str, Any]):
    """The new context, a dict as S4 returns it, with what stayed and what went, and the reasons.

    `kept` and `pruned` are in the order of the content. `threshold` is the score above which everything
    that was weighed stayed; `aggressive` says that only the last resort was left.
    """

    def __init__(
        self,
        context: Mapping[str, Any],
        judged: Sequence[Judged],
        stays: Collection[str],
        target: int,
        *,
        threshold: float = ANY_SCORE,
        aggressive: bool = False,
    ) -> None:
        super().__init__(context)
        self.kept = tuple(one for one in judged if one.item.id in stays)
        self.pruned = tuple(one for one in judged if one.item.id not in stays)
        self.size = sum(one.item.size for one in self.kept)
        self.target = target
        self.threshold = threshold
        self.aggressive = aggressive


class ContextPruner:
    """Prunes content down to a share of the window and keeps what is essential.

    Args:
        context_limit: the size of the window in tokens.
        config: `prune_to_percent` of it is the target (70); `priorities` are the rules.
        focus: what the work is about; without it there is no task and no file.
        matrix: the rules, where they are not those of the configuration.
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
        self.matrix = matrix if matrix is not None else config.matrix
        self.threshold = threshold
        self.focus = focus
        self._count = count
        self._clock = clock

    def prune(self, context: Content, target: int | None = None) -> PruneResult:
        """Return what of a context stays within the target; a context that fits stays whole.

        What stays is the very values of the context, under their keys and in their order; what came as a
        list of pieces or segments is by its type.

        Raises:
            ShortfallError: not even what the last resort keeps fits; `details["parts"]` names it.
        """
        items, target = self._items(context), self._target(target)
        if self.calculate_size(items) <= target:
            whole = context if isinstance(context, Mapping) else self.build_context(items)
            fitting = [Judged(item, "the context fits") for item in items]
            return PruneResult(whole, fitting, {item.id for item in items}, target)
        scored = self.score_content(self.categorize_content(items))
        selected = self.select_content(scored, target)
        if self.calculate_size(selected) > target:
            return self.aggressive_prune(items, target)
        stays = {item.id for item in selected}
        weighed = self._weigh(scored)
        judged = [Judged(i, weighed[i.id].why(left=i.id not in stays)) for i in items]
        gone = [one.best for i, one in weighed.items() if i not in stays and one.priority == 3]
        threshold = max(gone, default=self.threshold)
        return PruneResult(self.build_context(selected), judged, stays, target, threshold=threshold)

    def aggressive_prune(self, context: Content, target: int | None = None) -> PruneResult:
        """Return S4's last resort: its five essentials by name, None for what is not there.

        Pins stay too, and what is bonded to what stays, under `pinned` and `bonded`.

        Raises:
            ShortfallError: these alone do not fit.
        """
        items, target = self._items(context), self._target(target)
        named = essentials([item.segment() for item in items], self._focus())
        stays = [item for item in items if item.id in named]
        if self.calculate_size(stays) > target:
            raise _shortfall(stays, target)
        judged = [Judged(i, named.get(i.id, "not an absolute essential")) for i in items]
        return PruneResult(_by_name(stays, named), judged, named, target, aggressive=True)

    def categorize_content(self, context: Content) -> dict[Category, list[ContentItem]]:
        """Return the content by the categories of S4's second chart; each is there, if need be empty."""
        focus = self._focus()
        groups: dict[Category, list[ContentItem]] = {category: [] for category in Category}
        for item in self._items(context):
            groups[focus.category(item.segment())].append(item)
        return groups

    def score_content(self, content: Content) -> list[ScoredContent]:
        """Return the content with its points (0 to 100), highest first, newer before older."""
        items, focus = _in_order(self._items(content)), self._focus()
        context = ScoreContext(
            now=focus.now,
            current_task_id=focus.current_task_id,
            task_dependencies=focus.task_dependencies,
        )
        scores = KeepScore("points").all((item.segment() for item in items), context)
        scored = [ScoredContent(i, int(min(100, s))) for i, s in zip(items, scores, strict=True)]
        return sorted(scored, key=lambda one: (one.score, one.content.timestamp))[::-1]

    def select_content(
        self, scored: Iterable[ScoredContent], target_size: int | None = None
    ) -> list[ContentItem]:
        """Return what stays: all essentials, whatever their size, then the best that fit."""
        scored, target = list(scored), self._target(target_size)
        weighed = self._weigh(scored)
        plan = plan_by_priority(weighed.values(), self._focus(), target)
        leaving = {candidate.segment_id for candidate in plan.candidates}
        items = {one.content.id: one.content for one in scored}
        best = sorted(weighed, key=lambda name: weighed[name].rank)
        return [items[name] for name in best if name not in leaving]

    def build_context(self, selected: Iterable[ContentItem]) -> dict[str, Any]:
        """Return the values that items were made of, under the keys that they had; else items by type."""
        context: dict[str, Any] = {}
        for item in _in_order(selected):
            key = item.type if item.given is None else item.given.key
            if item.given is None or item.given.listed:
                context.setdefault(key, []).append(item.value)
            else:
                context[key] = item.value
        return context

    def calculate_size(self, context: Content) -> int:
        """Return the tokens of content."""
        return sum(item.size for item in self._items(context))

    def _weigh(self, scored: Iterable[ScoredContent]) -> dict[str, Weighed]:
        scored = list(scored)
        segments = [item.segment() for item in _in_order(one.content for one in scored)]
        points = {one.content.id: one.score for one in scored}
        return weigh(segments, points, self._focus(), self.matrix, self.threshold)

    def _focus(self) -> Focus:
        return self.focus if self.focus is not None else Focus(now=self._clock())

    def _target(self, target: int | None) -> int:
        if target is not None and target < 0:
            raise InputError(f"target cannot be {target}", hint="zero or more", field="target")
        return self.target_size if target is None else target

    def _items(self, context: Content) -> list[ContentItem]:
        return items_of(context, self._focus().now, self._count)


def aggressive_prune(context: Content) -> PruneResult:
    """Return S4's last resort for a context of any size; see `ContextPruner.aggressive_prune`."""
    items = items_of(context, utc_now())
    return ContextPruner(1).aggressive_prune(items, sum(item.size for item in items))


def _in_order(items: Iterable[ContentItem]) -> list[ContentItem]:
    return sorted(items, key=lambda item: item.given.place if item.given else 0)


def _by_name(stays: Sequence[ContentItem], named: dict[str, str]) -> dict[str, Any]:
    context: dict[str, Any] = dict.fromkeys(rule.name for rule in LAST_RESORT.always_keep)
    for name in dict.fromkeys((*context, *named.values())):
        values = [item.value for item in stays if named[item.id] == name]
        listed = len(values) > 1 or name in ("pinned", "bonded")
        context[name] = values if listed else (values[0] if values else None)
    return context


def _shortfall(items: Sequence[ContentItem], target: int) -> ShortfallError:
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
