"""S4 "Context Pruning Algorithm", block 9: its points are ours, and where its choice is sound, ours is the same.

Fault of the seed: `score_content` walks over a dict of categories as if it were the list of their items; the block also
uses names that it does not give: the time, the task, and four of its own methods.
"""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Dict, List

import ctxgc
from ctxgc.guard import ContentItem, Focus, ScoredContent

NOW = datetime(2026, 1, 2, tzinfo=UTC)
current_task_id = "t"
current_task = SimpleNamespace(dependencies=["d"])


def now():
    return NOW


# -- the block


class ContextPruner:
    def __init__(self, context_limit: int):
        self.context_limit = context_limit
        self.target_size = int(context_limit * 0.70)  # Prune to 70%

    def prune(self, context: Dict) -> Dict:
        """
        Prune context to target size while preserving essential information
        """
        # Step 1: Categorize all content
        categorized = self.categorize_content(context)

        # Step 2: Calculate importance scores
        scored = self.score_content(categorized)

        # Step 3: Select content to keep
        selected = self.select_content(scored, self.target_size)

        # Step 4: Build new context
        new_context = self.build_context(selected)

        # Step 5: Validate
        if self.calculate_size(new_context) <= self.target_size:
            return new_context
        else:
            # More aggressive pruning needed
            return self.aggressive_prune(new_context)

    def score_content(self, content: Dict) -> List[ScoredContent]:
        """
        Score content by importance
        """
        scores = []

        for item in content:
            score = 0

            # Recency (0-30 points)
            age_minutes = (now() - item.timestamp).total_seconds() / 60
            if age_minutes < 5:
                score += 30
            elif age_minutes < 30:
                score += 20
            elif age_minutes < 120:
                score += 10

            # Relevance to current task (0-40 points)
            if item.task_id == current_task_id:
                score += 40
            elif item.task_id in current_task.dependencies:
                score += 25

            # Content type priority (0-20 points)
            type_scores = {
                'system_prompt': 20,
                'current_task': 20,
                'acceptance_criteria': 18,
                'active_code': 15,
                'recent_feedback': 12,
                'task_history': 8,
                'examples': 5
            }
            score += type_scores.get(item.type, 0)

            # Reference count (0-10 points)
            score += min(10, item.reference_count * 2)

            scores.append(ScoredContent(item, score))

        return sorted(scores, key=lambda x: x.score, reverse=True)

    def select_content(self, scored: List[ScoredContent], target_size: int) -> List:
        """
        Select content to keep within target size
        """
        selected = []
        current_size = 0

        # Always include essentials first
        for item in scored:
            if item.content.is_essential:
                selected.append(item.content)
                current_size += item.content.size

        # Add remaining items by score until target reached
        for item in scored:
            if item.content.is_essential:
                continue

            if current_size + item.content.size <= target_size:
                selected.append(item.content)
                current_size += item.content.size
            else:
                break

        return selected


# -- the methods that it does not give are those of ours

focus = Focus(now=NOW, current_task_id="t", task_dependencies=frozenset({"d"}))
ours = ctxgc.ContextPruner(200, focus=focus)


class Runnable(ContextPruner):
    def categorize_content(self, context):
        return [item for group in ours.categorize_content(context).values() for item in group]

    def build_context(self, selected):
        return ours.build_context(selected)

    def calculate_size(self, context):
        return ours.calculate_size(context)


def piece(name, kind, minutes, task=None, references=0, **fields):
    time = NOW - timedelta(minutes=minutes)
    return ContentItem(
        id=name, type=kind, timestamp=time, size=20, task_id=task, reference_count=references, **fields
    )


context = [
    piece("system", "system_prompt", 200, is_essential=True),
    piece("task", "current_task", 100, "t", is_essential=True),
    piece("criteria", "acceptance_criteria", 90, "t", is_essential=True),
    *(piece(f"code{n}", "active_code", 20 - n, "t", n) for n in range(3)),
    *(piece(f"of d{n}", "task_message", 8 - n, "d", n) for n in range(3)),
    *(piece(f"talk{n}", "assistant_message", 4 - n) for n in range(3)),
]
theirs = Runnable(200)
assert (theirs.context_limit, theirs.target_size) == (ours.context_limit, ours.target_size)

points = {one.content.id: one.score for one in theirs.score_content(theirs.categorize_content(context))}
assert points == {one.content.id: one.score for one in ours.score_content(context)}
assert theirs.prune(context) == ours.prune(context)
assert len(ours.prune(context).kept) == 7
