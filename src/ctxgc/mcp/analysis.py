"""Analysis: what may leave a context and why; nothing changes."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ctxgc.core.plan import PruningCandidate, PruningPlan
from ctxgc.core.planner import Planner
from ctxgc.errors import InputError
from ctxgc.mcp.context import Context


def make_plan(context: Context, target_tokens: int | None) -> PruningPlan:
    """Return what a collection would do.

    Args:
        context: what to look at.
        target_tokens: where to land; None is the configured target, or all garbage when that is met.

    Raises:
        InputError: the target is below zero.
    """
    engine, state = context.engine, context.state()
    if target_tokens is not None and target_tokens < 0:
        raise InputError(
            f"target_tokens cannot be {target_tokens}", hint="zero or more", field="target_tokens"
        )
    goal = target_tokens
    if goal is None:
        goal = engine.options.limit(engine.options.target_percent) or 0
    excess = context.tokens - goal
    if excess > 0:
        return engine.plan(state, free_tokens=excess)
    need = None if target_tokens is None else 0
    return Planner(engine.analyze(state), engine.options).plan(need)


def listed(
    context: Context, plan: PruningPlan, max_candidates: int, *, include_scores: bool
) -> list[dict[str, Any]]:
    """Return the first candidates of a plan, each with its reason."""
    return [
        _candidate(context, candidate, include_scores=include_scores)
        for candidate in islice(plan.candidates, max_candidates)
    ]


def proposed(context: Context, plan: PruningPlan, most: int = 5) -> list[dict[str, Any]]:
    """Return what is cold but important: not part of the plan, but worth a summary."""
    return [
        _candidate(context, proposal, include_scores=False) for proposal in plan.proposals[:most]
    ]


def _candidate(
    context: Context, candidate: PruningCandidate, *, include_scores: bool
) -> dict[str, Any]:
    name = context.heap.get(candidate.segment_id).name
    found: dict[str, Any] = {
        "segment_id": candidate.segment_id,
        **({"name": name} if name else {}),
        "type": candidate.type,
        **({"score": round(candidate.score, 3)} if include_scores else {}),
        "tokens": candidate.tokens,
        "action": candidate.action,
        "reason": candidate.reason,
    }
    return found
