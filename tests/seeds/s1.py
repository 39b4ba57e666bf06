"""S1: task 03, the GC engine."""

from __future__ import annotations

from tests.seeds import Requirement, section

ENTRIES: tuple[Requirement, ...] = (
    *section(
        "S1.engine",
        "GC engine interface",
        {
            "interface": "`IGCEngine` names the four methods, and `GCEngine` implements them.",
            "analyze-pruning-candidates": "`analyze_pruning_candidates(segments, roots)` lists candidates.",
            "compute-reachability": "`compute_reachability(roots, references)` returns a set of ids.",
            "score-segment": "`score_segment(segment, now)` returns a float.",
            "generate-pruning-plan": "`generate_pruning_plan(candidates, target_tokens)` returns a plan.",
        },
        issue=2,
        code="collector/engine.py",
        differs={
            "analyze-pruning-candidates": "A call and its result are reached together.",
            "score-segment": "Returns a keep_score: higher stays longer. The seed's rising number is `prune_score` (decision 1).",
        },
        doors={
            "analyze-pruning-candidates": {
                "engine": "The roots given and the pins, over references only; `plan(heap)` adds the rules and shared keys.",
                "Session": "`plan()`.",
                "MCP": "`context_gc_analyze`.",
            },
            "score-segment": {
                "Session": "The profile `score_profile` of the configuration.",
                "MCP": "`context_gc_configure(score_profile=...)`.",
            },
            "generate-pruning-plan": {
                "Session": "`plan(target_tokens)`: the size to get down to, not what to free.",
                "MCP": "`context_gc_analyze(target_tokens=...)`, likewise.",
            },
        },
    ),
    *section(
        "S1.roots",
        "Root set computation",
        {
            "current-task": "Segments with the task id of the current task are roots.",
            "active-file": "Segments with the path of the active file are roots.",
            "recent-messages": "The last N messages are roots; N is configurable.",
            "recent-messages-default": "N is 10 unless told otherwise.",
            "pinned": "Segments with `pinned=True` are roots.",
            "recent-decisions": "Decisions created in the last hour are roots.",
        },
        issue=2,
        code="core/roots.py",
        doors={
            "current-task": {
                "Session": "`set_task`, or `append(..., task_id=...)`; when the task fills the window, its newest hold."
            },
            "recent-messages": {
                "engine": "`RootKnobs(recent_messages=...)`.",
                "Session": "`recent_messages` of the configuration.",
                "MCP": "`context_gc_configure(recent_messages=...)`.",
            },
            "recent-decisions": {"Session": '`append(..., type="decision")` or `annotate`.'},
        },
    ),
    *section(
        "S1.mark",
        "Mark-and-sweep reachability",
        {
            "mark-phase": "From the roots, all referenced segments are marked recursively.",
            "sweep-phase": "Unmarked segments are potential candidates.",
            "references-field": "References in the segment's own field build the graph.",
            "references-in-tags": "References in the segment's tags build the graph.",
        },
        issue=2,
        code="core/mark.py",
        differs={
            "references-in-tags": "As a tag `ref:ID`: a plain tag is a word that segments share, never an id by accident.",
        },
    ),
    *section(
        "S1.score",
        "Segment scoring",
        {
            "recency": "Recency is the age of the last touch in days; older scores higher.",
            "type-log": "A log scores 1.0.",
            "type-note": "A note scores 0.8.",
            "type-code": "Code scores 0.5.",
            "type-message": "A message scores 0.3.",
            "type-summary": "A summary scores 0.2.",
            "type-decision": "A decision scores 0.1.",
            "type-unknown": "A type that the table lacks scores 0.5.",
            "refcount": "The refcount counts as 1 / (refcount + 1).",
            "generation": "The old generation scores 1.0, the young 0.3.",
            "weights": "The terms weigh 0.4, 0.3, 0.2 and 0.1.",
        },
        issue=2,
        code="core/score.py",
        differs={
            "recency": 'As `prune_score`. The seed says "lower = more likely to prune", but its formula and its steps say the opposite; the formula counts. It is unbounded: a week-old decision outweighs a fresh log, so `s1` is not the default profile.',
            "generation": "As written in `prune_score` and `s1`; the profile `default` does not prune the old sooner (decision 1).",
        },
    ),
    *section(
        "S1.candidates",
        "Pruning candidate identification",
        {
            "unreachable": "Unreachable segments are the first candidates.",
            "scored": "Every candidate carries its score.",
            "sorted": "Candidates come with the most prunable first.",
            "top": "The top candidates can be asked for.",
        },
        issue=2,
        code="collector/engine.py",
        differs={
            "unreachable": "`analyze_pruning_candidates` lists no others; in `plan(heap)` the reachable follow as S0 has it, only while the target is unmet.",
            "sorted": 'Lowest keep_score first, which is the seed\'s "highest first" mirrored.',
        },
    ),
    *section(
        "S1.plan",
        "Pruning plan generation, pruning plan structure",
        {
            "most-prunable-first": "A plan starts with the most prunable candidates.",
            "accumulates": "A plan takes candidates until their tokens reach the target.",
            "grouped": "A plan groups its segments by action, stash or delete.",
            "candidates": "`candidates` holds the chosen candidates, sorted by score.",
            "total-tokens-freed": "`total_tokens_freed` is the sum over the chosen candidates.",
            "stash-segments": "`stash_segments` lists the ids to stash.",
            "delete-segments": "`delete_segments` lists the ids to delete.",
            "reason": "`reason` explains the plan.",
            "structure": "A plan can be made of these five fields, in this order.",
        },
        issue=2,
        code="collector/sweep.py",
        differs={
            "accumulates": "What the target does not need after all is given back; what is missing is `shortfall`.",
            "grouped": "Two more actions: evacuate and compress.",
            "candidates": "By class first (superseded, unreachable, reachable), then by score.",
            "total-tokens-freed": "Net of the text that stays in the place of a segment.",
            "delete-segments": "Empty unless a policy asks for deletion; the seed does not say when to delete.",
        },
    ),
    *section(
        "S1.acceptance",
        "Acceptance criteria",
        {
            "root-sets": "Root sets identify essential context.",
            "reachability": "Reachability finds all referenced segments.",
            "scores": "Scores are reasonable: within their range and in the expected order.",
            "targets": "Plans meet the target whenever the promises allow it.",
            "pinned": "Pinned segments are never pruned.",
            "performance": "The analysis of 32k tokens takes less than 2 s.",
        },
        issue=2,
        code="collector/engine.py",
        differs={
            "targets": "Otherwise `shortfall` says what is missing; a root is never taken to meet a number.",
        },
    ),
    *section(
        "S1.scenarios",
        "Test scenarios",
        {
            "simple-root-set": "Scenario 1: a root set of the current task only.",
            "complex-root-set": "Scenario 2: a root set of task, file, messages and pins.",
            "circular-references": "Scenario 3: reachability with circular references.",
            "scoring": "Scenario 4: scores of various types and ages.",
            "plan-targets": "Scenario 5: plans for different token targets.",
            "pinned-excluded": "Scenario 6: pinned segments are excluded.",
            "performance": "Scenario 7: a large context is analysed in time.",
        },
        issue=2,
        code="collector/engine.py",
    ),
    *section(
        "S1.tests",
        "Testing approach",
        {
            "full-cycle": "A full cycle runs on a realistic context.",
            "types-and-ages": "A cycle runs on various segment types and ages.",
            "reference-tracking": "References are tracked through a cycle.",
            "thousand-segments": "A context of more than 1,000 segments is analysed.",
        },
        issue=2,
        code="collector/engine.py",
    ),
)
