"""S4 "Pruning Strategy Decision Tree", block 2: each branch of it, and where ours leads.

Fault of the seed: while the new context is too large the threshold is lowered, which keeps more; ours rises.
"""

from datetime import UTC, datetime, timedelta

from ctxgc.guard import Category, ContentItem, ContextPruner, Focus, PriorityMatrix

# -- the block

CHART = """
flowchart TD
    Start([Pruning Required]) --> Analyze[Analyze Context<br/>Contents]

    Analyze --> Categories{Content<br/>Categories}

    Categories --> Current[Current Task Info]
    Categories --> Recent[Recent History]
    Categories --> Old[Old History]
    Categories --> System[System Prompts]
    Categories --> Examples[Examples & Templates]

    Current --> KeepCurrent{Must Keep?}
    KeepCurrent -->|Yes| Essential[Add to<br/>Essential List]
    KeepCurrent -->|No| Evaluate1[Evaluate Importance]

    Recent --> KeepRecent{Relevant to<br/>Current Task?}
    KeepRecent -->|Yes| Essential
    KeepRecent -->|No| Evaluate2[Evaluate Importance]

    Old --> KeepOld{Referenced<br/>Recently?}
    KeepOld -->|Yes| Evaluate3[Evaluate Importance]
    KeepOld -->|No| PruneList[Add to<br/>Prune List]

    System --> Essential
    Examples --> KeepExamples{Still Relevant?}
    KeepExamples -->|Yes| Essential
    KeepExamples -->|No| PruneList

    Evaluate1 --> Score1[Calculate<br/>Importance Score]
    Evaluate2 --> Score1
    Evaluate3 --> Score1

    Score1 --> Threshold{Score ><br/>Threshold?}

    Threshold -->|Yes| Essential
    Threshold -->|No| PruneList

    Essential --> NewContext[Build New<br/>Context]
    PruneList --> NewContext

    NewContext --> Check{New Size<br/>< Target?}

    Check -->|Yes| Complete([Pruning Complete])
    Check -->|No| LowerThreshold[Lower Threshold]
    LowerThreshold --> Score1
"""

# -- ours: without the matrix the tree alone decides

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = NOW - timedelta(hours=3)
FOCUS = Focus(now=NOW, current_task_id="t")
NO_RULES = PriorityMatrix(always_keep=(), keep_if_relevant=(), keep_if_space=(), always_prune=())
pruner = ContextPruner(100, focus=FOCUS, matrix=NO_RULES)


def piece(name, kind="note", time=NOW, **fields):
    return ContentItem(id=name, type=kind, timestamp=time, size=30, **fields)


branches = {
    "Essential": [
        piece("Current: must keep", "current_task"),
        piece("System", "system_prompt", OLD),
    ],
    "Essential while it fits": [
        piece("Recent: relevant", task_id="t"),
        piece("Examples: still relevant", "examples", task_id="t"),
    ],
    "Score1": [
        piece("Current: need not keep", time=OLD, task_id="t"),
        piece("Recent: not relevant"),
        piece("Old: referenced recently", time=OLD, last_referenced_at=NOW),
    ],
    "PruneList": [
        piece("Old: not referenced", time=OLD),
        piece("Examples: not relevant", "examples"),
    ],
}
categories = pruner.categorize_content([one for group in branches.values() for one in group])
assert set(categories) == set(Category)
for category, held in categories.items():
    word = {"current_task": "Current", "system_prompts": "System"}.get(category)
    word = word or category.split("_")[0].capitalize()
    assert f"Categories --> {word}[" in CHART
    assert held and all(one.id.startswith(word) for one in held), category

pruned = pruner.prune([one for group in branches.values() for one in group], 200)
left = {one.item.id: one.reason for one in pruned.pruned}
assert left == {
    "Old: referenced recently": "old, but referenced recently: 30 points, no room left",
    "Old: not referenced": "old and not referenced recently",
    "Examples: not relevant": "an example that is not relevant now",
}
assert pruned.threshold == 30  # it rose until what is above it fits
